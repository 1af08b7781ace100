import { once } from 'node:events'
import { isIP } from 'node:net'
import { hostname } from 'node:os'
import { connect } from 'node:tls'
import type pg from 'pg'
import { Agent, request } from 'undici'
import { AUDIT_LOGS } from '../../../db/audit.ts'
import { bareHost } from '../../shared/web/addresses.ts'

export type SiemDeps = {
  pool: pg.Pool
  /** `https://…`: JSON lines by POST; `syslog+tls://host:port`: RFC 5424 messages over TLS (RFC 5425). */
  url: string
  /** For https: the header that proves the sender; made again for each request, because tokens expire. */
  headers: () => Record<string, string>
  /** PEM of the receiver's certificate authority (undefined: the system's authorities), and our own certificate. */
  tls: { ca: string | undefined; cert: string | undefined; key: string | undefined }
}

/** A sealed row as sent: its signed body, and its place in the chain, by which receivers drop repeats. */
type Line = { log: string; seal_seq: string; denied: boolean; at: string; json: string }

const BATCH = 200
const TIMEOUT_MS = 10_000

/**
 * Sends the rows of all audit logs to the company's own log system, from the first row on. Each log is sent in the
 * order of its chain. A position moves when the receiver has taken the rows: after a crash or an outage they are sent
 * again, and none is lost. Runs one turn; returns true if there may be more.
 */
export const createSiem = ({ pool, url, headers, tls }: SiemDeps) => {
  const { protocol, hostname: name, port } = new URL(url)
  const host = bareHost(name)
  const connect = { ...tls, timeout: TIMEOUT_MS }
  const agent = new Agent({ connect, headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS })
  const send =
    protocol === 'https:'
      ? (lines: readonly Line[]) => post(agent, url, headers(), lines)
      : (lines: readonly Line[]) => write({ host, port: Number(port) || 6514, ...tls }, lines)
  return {
    turn: async (): Promise<boolean> => {
      let more = false
      for (const { table } of AUDIT_LOGS) {
        const lines = await nextLines(pool, table)
        if (lines.length === 0) continue
        await send(lines)
        await moveOn(pool, table, lines)
        more ||= lines.length === BATCH
      }
      return more
    },
    close: () => agent.close(),
  }
}

/** The name under which a log's position is stored, in the relay's state in the schema of operations. */
const placeOf = (table: string) => `siem ${table}`

const nextLines = async (pool: pg.Pool, table: string): Promise<Line[]> => {
  const { rows } = await pool.query<{
    body: string
    mac: string | null
    seal_seq: string
    seal_hash: string
    at: string
  }>(
    `select body, mac, seal_seq::text, seal_hash, at from ${table}
     where seal_seq >= coalesce((select next from operations.relay_state where name = $1), 1)
     order by ${table}.seal_seq limit ${BATCH}`,
    [placeOf(table)],
  )
  return rows.map(({ body, mac, seal_seq, seal_hash, at }) => {
    const told = JSON.parse(body) as { outcome?: string }
    const json = JSON.stringify({ ...told, log: table, seal_seq, seal_hash, mac })
    return { log: table, seal_seq, denied: told.outcome === 'denied', at: new Date(at).toISOString(), json }
  })
}

/** Another relay may have moved the position meanwhile; it never goes back. */
const moveOn = async (pool: pg.Pool, table: string, lines: readonly Line[]): Promise<void> => {
  const next = BigInt(lines.at(-1)?.seal_seq ?? 0) + 1n
  await pool.query(
    `insert into operations.relay_state as r (name, next) values ($1, $2)
     on conflict (name) do update set next = greatest(r.next, excluded.next)`,
    [placeOf(table), String(next)],
  )
}

const post = async (
  agent: Agent,
  url: string,
  headers: Record<string, string>,
  lines: readonly Line[],
): Promise<void> => {
  const { statusCode, body } = await request(url, {
    dispatcher: agent,
    method: 'POST',
    headers: { 'content-type': 'application/x-ndjson', ...headers },
    body: lines.map(({ json }) => `${json}\n`).join(''),
  })
  await body.dump()
  if (statusCode < 200 || statusCode > 299) throw new Error(`the log system answered ${statusCode}`)
}

type Receiver = SiemDeps['tls'] & { host: string; port: number }

/** Syslog has no receipt: the rows count as taken when the receiver has closed its end after ours. */
const write = async ({ host, port, ...tls }: Receiver, lines: readonly Line[]): Promise<void> => {
  const socket = connect({ host, port, ...tls, ...(isIP(host) === 0 && { servername: host }) })
  socket.setTimeout(TIMEOUT_MS, () => socket.destroy(new Error('the log system is silent')))
  await once(socket, 'secureConnect')
  socket.end(lines.map(frameOf).join(''))
  socket.resume()
  const closed = await once(socket, 'close')
  if (closed[0]) throw new Error('the log system broke the connection off')
}

/** Facility 13 (log audit); a refusal is a warning, the rest are notices. */
const PRIORITY = { warning: 13 * 8 + 4, notice: 13 * 8 + 5 }
const HOST = hostname()

const frameOf = ({ denied, at, log, json }: Line): string => {
  const priority = denied ? PRIORITY.warning : PRIORITY.notice
  const message = `<${priority}>1 ${at} ${HOST} signalbox - ${log} - ${json}`
  return `${Buffer.byteLength(message)} ${message}`
}
