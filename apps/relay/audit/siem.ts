import { addAbortListener, once } from 'node:events'
import { isIP } from 'node:net'
import { hostname } from 'node:os'
import { connect } from 'node:tls'
import type pg from 'pg'
import { Agent, buildConnector, request } from 'undici'
import { AUDIT_LOGS } from '../../../db/audit.ts'
import { readTextFile } from '../../shared/config.ts'
import type { Logger } from '../../shared/telemetry.ts'
import { connectorOf } from '../../shared/tls/mtls.ts'
import { follow, readPair, readPem, refuseUseless, renew } from '../../shared/tls/pairs.ts'
import { bareHost } from '../../shared/web/addresses.ts'
import type { RelayConfig } from '../config.ts'

export type Receiver = {
  /** `https://…`: JSON lines by POST; `syslog+tls://host:port`: RFC 5424 messages over TLS (RFC 5425). */
  url: string
  /** For https: the header that proves the sender; made again for each request, because tokens expire. */
  headers: () => Record<string, string>
  /** PEM of its certificate authority (undefined: the system's authorities), and our own pair; both change in place. */
  tls: { ca: string | undefined; cert: string | undefined; key: string | undefined }
}
export type SiemDeps = Receiver & { pool: pg.Pool; log: Pick<Logger, 'error'>; longest_ms?: number }

type Settings = Pick<RelayConfig, Extract<keyof RelayConfig, `RELAY__SIEM__${string}`>>

/** The configured receiver. A file that cannot be read stops the start; later all are read again. */
export const receiverOf = (config: Settings): Receiver | undefined => {
  const { RELAY__SIEM__URL: url, RELAY__SIEM__HEADER: template, RELAY__SIEM__TOKEN_FILE: token_file } = config
  if (url === undefined) return undefined
  const [name = '', value = ''] = template.split(/: (.*)/)
  const headers = (): Record<string, string> => {
    const token = token_file && readTextFile('RELAY__SIEM__TOKEN_FILE', token_file)
    return token ? { [name]: value.replace('{token}', () => token) } : {}
  }
  headers()
  const tls = readTls(config)
  const renewed = () => {
    const { ca, cert, key } = readTls(config)
    if (cert && key) refuseUseless('RELAY__SIEM', { cert, key })
    return renew(tls, { ca, cert, key })
  }
  follow('RELAY__SIEM', { renewed, certificates: () => ({ siem: tls.cert, siem_authority: tls.ca }) })
  return { url, headers, tls }
}

const readTls = (config: Settings): Receiver['tls'] => {
  const { RELAY__SIEM__CA_FILE: ca_file } = config
  const pair = readPair('RELAY__SIEM', config)
  return { ca: ca_file && readPem('RELAY__SIEM__CA_FILE', ca_file), cert: pair?.cert, key: pair?.key }
}

/** A sealed row as sent: its signed body, and its place in the chain, by which receivers drop repeats. */
type Line = { log: string; seal_seq: string; seal_hash: string; mac: string | null } & {
  denied: boolean
  at: string
  json: string
}
/** The receiver has read the rows and wants none like them: too large, or not in its form. */
class Refused extends Error {}
const REFUSALS = [400, 413, 422]

const BATCH = 200
/** How long the receiver may be silent, and how long one batch may take in all: one that drips must not hold the export. */
const TIMEOUT_MS = 10_000
const LONGEST_MS = 60_000

/**
 * Sends the rows of all audit logs to the company's own log system, from the first row on. Each log is sent in the
 * order of its chain. A position moves when the receiver has taken the rows: after a crash or an outage they are sent
 * again, and none is lost. A row that the receiver refuses is replaced by a stub that names it, and a log that fails
 * holds up no other. Runs one turn; returns true if there may be more.
 */
export const createSiem = ({ pool, url, headers, tls, log, longest_ms = LONGEST_MS }: SiemDeps) => {
  const { protocol, hostname: name, port } = new URL(url)
  const host = bareHost(name)
  const connect = connectorOf(tls, (texts) => buildConnector({ ...texts, timeout: TIMEOUT_MS }))
  const agent = new Agent({ connect, headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS })
  const stopping = new AbortController()
  const limits = { longest_ms, stopping: stopping.signal }
  const send =
    protocol === 'https:'
      ? (lines: readonly Line[]) => post(agent, { url, headers: headers(), ...limits }, lines)
      : (lines: readonly Line[]) => write({ host, port: Number(port) || 6514, ...limits, ...tls }, lines)
  /** Sends these rows, and finds a refused one by halves. */
  const deliver = async (table: string, lines: readonly Line[]): Promise<void> => {
    try {
      await send(lines)
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      const half = lines.length >> 1
      if (half > 0) {
        await deliver(table, lines.slice(0, half))
        return deliver(table, lines.slice(half))
      }
      await send(lines.map(stubOf))
      const { seal_seq, seal_hash } = lines[0] as Line
      log.error(
        { err: error, table, seal_seq, seal_hash },
        'the log system refuses an audit row: it has a stub instead',
      )
    }
    await moveOn(pool, table, lines)
  }
  return {
    turn: async (): Promise<boolean> => {
      let more = false
      const failures: unknown[] = []
      for (const { table } of AUDIT_LOGS) {
        if (stopping.signal.aborted) break
        try {
          const lines = await nextLines(pool, table)
          if (lines.length === 0) continue
          await deliver(table, lines)
          more ||= lines.length === BATCH
        } catch (error) {
          failures.push(error)
        }
      }
      if (failures.length > 0 && !stopping.signal.aborted) throw failures[0]
      return more
    },
    /** Ends a turn early: a receiver that does not answer must not keep a relay that stops. Its rows are sent again. */
    cut: () => stopping.abort(new Error('the relay stops')),
    close: () => agent.destroy(),
  }
}

/** The name under which a log's position is stored, in the relay's state in the schema of operations. */
export const placeOf = (table: string) => `siem ${table}`

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
    const line = { log: table, seal_seq, seal_hash, mac, json }
    return { ...line, denied: told.outcome === 'denied', at: new Date(at).toISOString() }
  })
}

/** Its place in the chain, for a row that the receiver refuses: the row itself stays in the database. */
const stubOf = (line: Line): Line => {
  const { log, seal_seq, seal_hash, mac } = line
  return { ...line, json: JSON.stringify({ log, seal_seq, seal_hash, mac, refused: true }) }
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

type Limits = { longest_ms: number; stopping: AbortSignal }
type Https = Limits & { url: string; headers: Record<string, string> }

const post = async (agent: Agent, to: Https, lines: readonly Line[]): Promise<void> => {
  const { url, headers, longest_ms, stopping } = to
  const { statusCode, body } = await request(url, {
    dispatcher: agent,
    method: 'POST',
    headers: { 'content-type': 'application/x-ndjson', ...headers },
    body: lines.map(({ json }) => `${json}\n`).join(''),
    signal: AbortSignal.any([AbortSignal.timeout(longest_ms), stopping]),
  })
  await body.dump()
  const fault = `the log system answered ${statusCode}`
  if (REFUSALS.includes(statusCode)) throw new Refused(fault)
  if (statusCode < 200 || statusCode > 299) throw new Error(fault)
}

type Syslog = Limits & Receiver['tls'] & { host: string; port: number }

/** Syslog has no receipt: the rows count as taken when the receiver has closed its end after ours. */
const write = async ({ host, port, longest_ms, stopping, ...tls }: Syslog, lines: readonly Line[]): Promise<void> => {
  const socket = connect({ host, port, ...tls, ...(isIP(host) === 0 && { servername: host }) })
  socket.setTimeout(TIMEOUT_MS, () => socket.destroy(new Error('the log system is silent')))
  const late = setTimeout(() => socket.destroy(new Error('the log system is too slow')), longest_ms)
  const cut = addAbortListener(stopping, () => socket.destroy(stopping.reason))
  socket.once('close', () => {
    clearTimeout(late)
    cut[Symbol.dispose]()
  })
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
