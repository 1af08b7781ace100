import { userInfo } from 'node:os'
import { createDb, type Db } from '../../../db/client.ts'
import { createCatalogClient } from '../../operations/catalog/client.ts'
import { createCatalogProjection } from '../../operations/catalog/projection.ts'
import { table } from '../../shared/data/print.ts'
import { createServiceSigner, type ServiceSigner } from '../../shared/service/tokens.ts'
import { createTelemetry } from '../../shared/telemetry.ts'
import { mtlsOfProcess } from '../../shared/tls/mtls.ts'
import { signalboxDir } from '../base/paths.ts'
import { productionEnv } from '../deploy/reference.ts'
import { loadAppEnv } from '../run/app-env.ts'
import { APP_NAMES } from '../run/apps.ts'

/** A problem that a person can fix from its message, which is printed as one line. */
export class OpsError extends Error {}

/**
 * Uses the settings of that folder; the environment takes precedence. Those that apps share are the relay's: NATS and
 * Temporal are reached in its name.
 */
export const takeSettings = (dir: string): void => {
  const found = ['relay', ...APP_NAMES].flatMap((app) => Object.entries(productionEnv(dir, app) ?? {}))
  if (found.length === 0) throw new OpsError(`${dir} has no settings. Name the folder of the set-up with --env.`)
  for (const [name, value] of found) process.env[name] ??= value
}

/** The same, for verbs that call apps. */
export const takeProduction = (dir: string): void => {
  takeSettings(dir)
  // The internal listeners of apps require a certificate; any of ours will do.
  mtlsOfProcess()
}

/** A setting of an app: from the environment, or as recorded by the running platform of this folder. */
export const settingOf = (app: string, name: string): string => {
  const variable = `${app.toUpperCase()}__${name}`
  if (!process.env[variable]) loadAppEnv(signalboxDir(), app)
  const value = process.env[variable]
  if (!value) throw new OpsError(`${variable} is not set, and no platform has run on ${signalboxDir()}.`)
  return value
}

export const LONG_MS = 60_000

/** Through a pooler a connection has the time-outs of the role alone; the relay's address is that of Postgres itself. */
export const directUrl = (app: string): string => {
  const url = new URL(settingOf(app, 'DATABASE__URL'))
  if (!url.searchParams.has('pooler')) return url.href
  const { username, password } = url
  return Object.assign(new URL(settingOf('relay', 'DATABASE__URL')), { username, password }).href
}

/** Works on the database as an app does, with that app's role and rights. */
export const withDb = async <T>(
  app: string,
  work: (db: Db) => Promise<T>,
  statement_timeout_ms = LONG_MS,
): Promise<T> => {
  const { db, close } = createDb(directUrl(app), { app: 'ops', max: 4, statement_timeout_ms })
  try {
    return await work(db)
  } catch (error) {
    if (isAway(error)) throw new OpsError('Postgres does not answer: these verbs work beside the running platform.')
    throw error
  } finally {
    await close()
  }
}

const isAway = (error: unknown): boolean => {
  const { code, cause } = error as { code?: string; cause?: unknown }
  return code === 'ECONNREFUSED' || code === '57P03' || (cause !== undefined && isAway(cause))
}

const signerOf = (app: string): ServiceSigner =>
  createServiceSigner({ name: app, key_file: settingOf(app, 'SERVICE__KEY_FILE') })

/** Operations' projection of the catalog, in this database. */
export const projectionOf = (
  db: Db,
  createIntent: Parameters<typeof createCatalogProjection>[0]['createIntent'] = async () => {},
) => {
  const catalog = createCatalogClient(settingOf('operations', 'CATALOG__URL'), signerOf('operations'))
  const { log } = createTelemetry('ops', { level: 'silent' })
  return createCatalogProjection({ db, catalog, log, createIntent })
}

/** The dependencies with which the catalog calls operations. */
export const indexDeps = (db: Db) => ({
  db,
  config: { operations_url: settingOf('catalog', 'OPERATIONS__URL') },
  trust: { signer: signerOf('catalog') },
})

export const printTable = (titles: string[], rows: string[][]): void => {
  if (rows.length > 0) for (const line of table(titles, rows)) console.log(line)
}

/** The actor that the audit log names for these commands. */
export const operator = (): string => `ops:${userInfo().username}`
