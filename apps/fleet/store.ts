import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

/** Faults on demand, for demos and tests. */
export type Faults = {
  /** /health answers 500 once a release has been deployed. */
  unhealthy_after_deploy?: boolean
  /** Every write waits this long before it acts. */
  delay_ms?: number
  /** Every write acts, but its answer never arrives. */
  swallow_answers?: boolean
  /** Every write answers this status and has no effect. */
  refuse_with?: number
}

export type Host = {
  hostname: string
  port: number
  resource_id: string | null
  region: string | null
  release: string
  traffic: 'in' | 'out'
  /** When the last connection will have left, in milliseconds since the epoch; 0 if not draining. */
  drained_at: number
  deployed: number
  serial: number
  faults: Faults
}

/** One effect on a host, written before its answer: proof of real effects. */
export type Effect = {
  hostname: string
  operation_id: string | null
  node_id: string | null
  attempt: string | null
  key: string | null
  fence: number | null
  effect: string
  detail: string
}

/** A host's answer to one request. */
type Answer = { path: string; status: number; body: string }

const TABLES = `
  create table if not exists hosts (hostname text primary key, port integer not null unique, resource_id text, region text, release text not null,
    traffic text not null default 'in', drained_at integer not null default 0, deployed integer not null default 0, serial integer not null default 1,
    faults text not null default '{}') strict;
  create table if not exists effects (id integer primary key, at text not null, hostname text not null, operation_id text, node_id text, attempt text,
    key text, fence integer, effect text not null, detail text not null) strict;
  create table if not exists answers (hostname text not null, key text not null, path text not null, status integer not null, body text not null,
    primary key (hostname, key, path)) strict;
  create table if not exists fences (hostname text not null, node text not null, fence integer not null, primary key (hostname, node)) strict;`

/** Hosts, effects and answers in one SQLite file with full synchronization, so it survives a crash of this process. */
export const openStore = (file: string) => {
  if (file !== ':memory:') mkdirSync(dirname(file), { recursive: true })
  const db = new DatabaseSync(file)
  db.exec('pragma journal_mode = wal; pragma synchronous = full')
  db.exec(TABLES)
  const toHost = (row: Record<string, unknown>): Host => ({
    ...(row as unknown as Host),
    faults: JSON.parse(String(row.faults)) as Faults,
  })
  return {
    hosts: (): Host[] => db.prepare('select * from hosts order by hostname').all().map(toHost),
    host: (hostname: string): Host | undefined => {
      const row = db.prepare('select * from hosts where hostname = ?').get(hostname)
      return row && toHost(row)
    },
    saveHost: (host: Host): void => saveHost(db, host),
    removeHost: (hostname: string): void => void db.prepare('delete from hosts where hostname = ?').run(hostname),
    nextPort: (base: number): number =>
      Number(
        db.prepare('select coalesce(max(port) + 1, ?) as port from hosts where port >= ?').get(base, base)?.port ??
          base,
      ),

    answer: (hostname: string, key: string, path: string) =>
      db
        .prepare('select status, body from answers where hostname = ? and key = ? and path = ?')
        .get(hostname, key, path) as { status: number; body: string } | undefined,

    /** Records a node's fence unless a larger one was recorded before. */
    takeFence: (hostname: string, node: string, fence: number): boolean =>
      db
        .prepare(
          `insert into fences (hostname, node, fence) values (?, ?, ?)
           on conflict (hostname, node) do update set fence = excluded.fence where excluded.fence >= fences.fence`,
        )
        .run(hostname, node, fence).changes > 0,

    /** Makes effect, new host state and answer durable together. */
    commit: (host: Host, effect: Effect, answer: Answer, save: (host: Host) => void): void => {
      db.exec('begin immediate')
      try {
        insertEffect(db, effect)
        if (effect.key) insertAnswer(db, host.hostname, effect.key, answer)
        save(host)
        db.exec('commit')
      } catch (error) {
        db.exec('rollback')
        throw error
      }
    },
    effects: (after: number, limit: number) =>
      db.prepare('select * from effects where id > ? order by id limit ?').all(after, limit),
    close: () => db.close(),
  }
}
export type Store = ReturnType<typeof openStore>

const saveHost = (db: DatabaseSync, host: Host): void => {
  db.prepare(
    `insert into hosts (hostname, port, resource_id, region, release, traffic, drained_at, deployed, serial, faults) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     on conflict (hostname) do update set port = excluded.port, resource_id = excluded.resource_id, region = excluded.region, release = excluded.release,
       traffic = excluded.traffic, drained_at = excluded.drained_at, deployed = excluded.deployed, serial = excluded.serial, faults = excluded.faults`,
  ).run(
    host.hostname,
    host.port,
    host.resource_id,
    host.region,
    host.release,
    host.traffic,
    host.drained_at,
    host.deployed,
    host.serial,
    JSON.stringify(host.faults),
  )
}

const insertEffect = (db: DatabaseSync, effect: Effect): void => {
  db.prepare(
    'insert into effects (at, hostname, operation_id, node_id, attempt, key, fence, effect, detail) values (?, ?, ?, ?, ?, ?, ?, ?, ?)',
  ).run(
    new Date().toISOString(),
    effect.hostname,
    effect.operation_id,
    effect.node_id,
    effect.attempt,
    effect.key,
    effect.fence,
    effect.effect,
    effect.detail,
  )
}

const insertAnswer = (db: DatabaseSync, hostname: string, key: string, { path, status, body }: Answer): void => {
  db.prepare('insert into answers (hostname, key, path, status, body) values (?, ?, ?, ?, ?)').run(
    hostname,
    key,
    path,
    status,
    body,
  )
}
