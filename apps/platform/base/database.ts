import { createHmac, hash, pbkdf2Sync, randomBytes } from 'node:crypto'
import pg from 'pg'
import { withConnection } from '../../../db/connection.ts'
import { lockStatement, sessionLock } from '../../../db/locks.ts'
import { AREAS, migrate } from '../../../db/migrate.ts'

/** The database role of each app: its login, and the schema that it reads and writes. The relay has separate rights. */
export const DATABASE_ROLES: Record<string, string | undefined> = {
  identity: 'identity',
  credential: 'credential',
  session: 'session',
  token: 'token',
  catalog: 'catalog',
  operations: 'operations',
  worker: 'operations',
  relay: undefined,
}
/** Where an app asks for more than others. */
const STATEMENT_TIMEOUTS: Record<string, string | undefined> = { catalog: '5s', worker: '10s' }
export const roleOf = (app: string): string => `signalbox_${app}`

/** Audit logs: their app adds and reads rows, the relay seals them, and no one changes or removes a row. */
const AUDIT_TABLES = ['audit', 'user_events', 'key_events', 'auth_events']

export type DatabaseOptions = {
  admin_url: string
  database: string
  password: (app: string) => string
  /** Written into a new database; a database with a different id is refused. */
  installation_id?: string
}

/**
 * Brings one database up to date: creates it, runs all migrations as its owner, and gives each app's login role the
 * rights on its own schema only. Returns whether the roles exist; on a server that does not let us create roles, all
 * apps use the given account.
 */
export const prepareDatabase = async ({
  admin_url,
  database,
  password,
  installation_id,
}: DatabaseOptions): Promise<boolean> => {
  const may_create_roles = await withClient(admin_url, async (admin) => {
    await admin.query(sessionLock.wait('roles')) // One at a time, because roles belong to the whole server.
    const { rowCount } = await admin.query('select 1 from pg_database where datname = $1', [database])
    if (!rowCount) await admin.query(`create database ${quote(database)}`)
    const { rows } = await admin.query<{ may: boolean }>(
      'select rolsuper or rolcreaterole as may from pg_roles where rolname = current_user',
    )
    if (!rows[0]?.may) return false
    for (const app of Object.keys(DATABASE_ROLES)) await createRole(admin, app, password(app))
    return true
  })
  const url = databaseUrl(admin_url, database)
  await migrate(url, 'all')
  if (installation_id) await withClient(url, (db) => claimDatabase(db, database, installation_id))
  if (may_create_roles) await withClient(url, grantAll)
  return may_create_roles
}

/** Claims a database for one installation, because the keys of another cannot read its contents. */
const claimDatabase = async (db: pg.Client, database: string, id: string): Promise<void> => {
  await db.query('create table if not exists migrations.installation (id uuid not null)')
  await db.query(
    'insert into migrations.installation select $1 where not exists (select from migrations.installation)',
    [id],
  )
  const { rows } = await db.query<{ id: string }>('select id from migrations.installation')
  if (rows[0]?.id !== id)
    throw new Error(
      `The database "${database}" belongs to another installation (${rows[0]?.id}). Set SIGNALBOX_DIR to its folder, or DATABASE_URL to another server.`,
    )
}

/** The address of another database on the same server. */
export const databaseUrl = (base: string, database: string): string => {
  const url = new URL(base)
  url.pathname = `/${database}`
  return url.href
}

const withClient = <T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> =>
  withConnection({ connectionString: url, application_name: 'platform' }, work)

const quote = pg.escapeIdentifier

const ROUNDS = 4096
/** The verifier of a password (RFC 5803): Postgres writes statements that fail, and perhaps all of these, into its log. */
const verifierOf = (password: string): string => {
  const salt = randomBytes(16)
  const salted = pbkdf2Sync(password, salt, ROUNDS, 32, 'sha256')
  const keyed = (text: string) => createHmac('sha256', salted).update(text).digest()
  const stored = hash('sha256', keyed('Client Key'), 'base64')
  return `SCRAM-SHA-256$${ROUNDS}:${salt.toString('base64')}$${stored}:${keyed('Server Key').toString('base64')}`
}

const createRole = async (admin: pg.Client, app: string, password: string): Promise<void> => {
  const role = quote(roleOf(app))
  const { rowCount } = await admin.query('select 1 from pg_roles where rolname = $1', [roleOf(app)])
  await admin.query(
    `${rowCount ? 'alter' : 'create'} role ${role} login password ${pg.escapeLiteral(verifierOf(password))}`,
  )
  // As `createDb` has them, for connections through a pooler. The lock's is shorter: see there.
  const settings = {
    statement_timeout: STATEMENT_TIMEOUTS[app] ?? '2s',
    lock_timeout: '1800ms',
    idle_in_transaction_session_timeout: '10s',
    client_connection_check_interval: '250ms',
    timezone: 'UTC',
    jit: 'off',
  }
  for (const [name, value] of Object.entries(settings)) await admin.query(`alter role ${role} set ${name} = '${value}'`)
  // Lets the relay report how far replicas lag behind. If the owner must not grant this, the doctor reports it.
  if (app === 'relay')
    await admin.query(`do $$ begin grant pg_read_all_stats to ${role};
    exception when insufficient_privilege then null; end $$`)
}

const grantAll = async (db: pg.Client): Promise<void> => {
  await db.query('begin')
  await db.query(lockStatement('grants'))
  const { rows: tables } = await db.query<{ schema: string; name: string }>(
    'select schemaname as schema, tablename as name from pg_tables where schemaname = any($1)',
    [[...AREAS, 'migrations']],
  )
  const tablesOf = (schema: string) => tables.filter((table) => table.schema === schema).map(({ name }) => name)
  const statements: string[] = []
  for (const [app, schema] of Object.entries(DATABASE_ROLES)) {
    const role = quote(roleOf(app))
    statements.push(
      `grant usage on schema migrations to ${role}`,
      `grant select on all tables in schema migrations to ${role}`,
    )
    if (schema && tablesOf(schema).length > 0) statements.push(...ownSchema(role, schema, tablesOf(schema)))
  }
  for (const schema of AREAS.filter((area) => tablesOf(area).length > 0))
    statements.push(...relayRights(quote(roleOf('relay')), schema, new Set(tablesOf(schema))))
  await db.query(statements.join(';\n'))
  await db.query('commit')
}

const ownSchema = (role: string, schema: string, tables: string[]): string[] => [
  `grant usage on schema ${schema} to ${role}`,
  `grant select, insert, update, delete on all tables in schema ${schema} to ${role}`,
  `grant usage, select on all sequences in schema ${schema} to ${role}`,
  ...tables
    .filter((table) => AUDIT_TABLES.includes(table))
    .map((table) => `revoke update, delete on ${schema}.${table} from ${role}`),
]

/** Only the relay crosses schemas: marks outboxes, sends commands, seals audit rows, adds findings, session's facts. */
const relayRights = (role: string, schema: string, tables: Set<string>): string[] => {
  const rights: Record<string, string> = {
    outbox: 'select, update (pub_seq, js_seq, published_at, parked)',
    relay_state: 'select, insert, update',
    dead_letter: 'select',
    projection_version: 'select',
    ...(schema === 'operations' && {
      operations: 'select',
      operation_control: 'select',
      operation_commands: 'select, update',
      engine_findings: 'select, insert',
      notify_security: 'insert',
    }),
    ...(schema === 'session' && { revocations: 'select, insert' }),
  }
  for (const table of AUDIT_TABLES) {
    rights[table] = `select, ${schema === 'session' ? 'insert, ' : ''}update (seal_seq, prev_hash, seal_hash)`
  }
  const granted = Object.entries(rights).filter(([table]) => tables.has(table))
  return [
    `grant usage on schema ${schema} to ${role}`,
    ...(schema === 'session' || schema === 'operations'
      ? [`grant usage on all sequences in schema ${schema} to ${role}`]
      : []),
    ...granted.map(([table, what]) => `grant ${what} on ${schema}.${table} to ${role}`),
  ]
}
