import type { Person } from '../../apps/platform/demo/client.ts'
import { verifyLog } from '../../apps/platform/ops/verify-audit.ts'
import { secretKeysOf } from '../../apps/shared/config.ts'
import { deriveKey } from '../../apps/shared/data/digest.ts'
import { AUDIT_LOGS } from '../../db/audit.ts'
import { createDb } from '../../db/client.ts'
import { readModelDifferences } from '../support/read-models.ts'
import type { Site } from '../support/stack.ts'
import { until } from '../support/until.ts'
import { expectedOf, expectedStatus, FIRST_RELEASE, type Job } from './job.ts'
import { countOf, type Effect, readLedger } from './ledger.ts'

export type Verdict = { effects: number; twice: number; lost: number; breaches: string[] }

const QUIET_MS = 60_000

/**
 * The outcome of all jobs, by the fleet's ledger, the hosts, the catalog and the rows: every operation ended right,
 * every effect happened once, no work is in flight, and all derived rows agree with their origin.
 */
export const judge = async (stack: Site, reader: Person, jobs: readonly Job[]): Promise<Verdict> => {
  const breaches: string[] = []
  const ledger = await readLedger(stack.url('fleet'))
  const own = new Set(jobs.map(({ operation_id }) => operation_id))
  for (const { operation_id, hostname, effect } of ledger)
    if (!own.has(operation_id ?? '')) breaches.push(`${hostname} ${effect} by an operation that nobody started`)
  let [twice, lost] = [0, 0]
  for (const job of jobs) {
    if (job.status !== expectedStatus(job)) breaches.push(`${job.name} ended as ${job.status}`)
    const found = compare(job, ledger)
    twice += found.twice.length
    lost += found.lost.length
    if (found.twice.length > 0) breaches.push(`${job.name}: too often ${found.twice.join(', ')}`)
    if (found.lost.length > 0) breaches.push(`${job.name}: lost ${found.lost.join(', ')}`)
  }
  breaches.push(...(await hostsThatDiffer(reader, jobs)), ...(await rowsThatDiffer(stack, jobs)))
  return { effects: ledger.length, twice, lost, breaches }
}

/** Each thing that was done more or less often than expected; one key twice at a host is also too often. */
const compare = (job: Job, ledger: readonly Effect[]) => {
  const done = ledger.filter(({ operation_id }) => operation_id === job.operation_id)
  const [found, expected] = [
    countOf(done.map(({ hostname, effect }) => `${hostname} ${effect}`)),
    countOf(expectedOf(job)),
  ]
  const keys = countOf(done.map(({ hostname, key }) => `${hostname} ${key}`))
  return {
    twice: [
      ...[...found].filter(([what, times]) => times > (expected.get(what) ?? 0)).map(([what]) => what),
      ...[...keys].filter(([, times]) => times > 1).map(([key]) => key),
    ],
    lost: [...expected].filter(([what, times]) => times > (found.get(what) ?? 0)).map(([what]) => what),
  }
}

/** The catalog shows each host as the last job that changed it left it; an undone job restores the earlier state. */
const hostsThatDiffer = async (reader: Person, jobs: readonly Job[]): Promise<string[]> => {
  const wanted = new Map<string, string>()
  for (const { kind, hosts, release } of jobs)
    for (const host of hosts) wanted.set(host, kind === 'undone' ? (wanted.get(host) ?? FIRST_RELEASE) : release)
  const differ: string[] = []
  for (const [host, release] of wanted) {
    type States = Record<'desired_state' | 'observed_state', { release: string }>
    const { desired_state: desired, observed_state: observed } = await reader.get<States>(`/v1/resources/${host}`)
    if (desired.release !== release || observed.release !== release)
      differ.push(`the catalog says ${desired.release} and ${observed.release} of ${host}, not ${release}`)
  }
  return differ
}

const NOTHING: Record<string, string> = {
  'events that were never published':
    'select count(*)::int as n from (select 1 from operations.outbox where published_at is null union all select 1 from catalog.outbox where published_at is null) rows',
  'commands that were never sent':
    "select count(*)::int as n from operations.operation_commands where status in ('pending', 'sending')",
  'events that were set aside':
    'select count(*)::int as n from (select 1 from operations.dead_letter union all select 1 from catalog.dead_letter) rows',
  'leases that were not given back': 'select count(*)::int as n from operations.leases',
}

const rowsThatDiffer = async (stack: Site, jobs: readonly Job[]): Promise<string[]> => {
  const differ: string[] = []
  const { db, pool, close } = createDb(stack.database_url, { app: 'chaos', max: 2, statement_timeout_ms: 30_000 })
  const countBy = async (query: string) => (await pool.query<{ n: number }>(query)).rows[0]?.n ?? Number.NaN
  try {
    for (const [what, query] of Object.entries(NOTHING))
      await until(async () => (await countBy(query)) === 0, { timeout_ms: QUIET_MS }).catch(async () => {
        differ.push(`${await countBy(query)} ${what}`)
      })
    const operations = await countBy('select count(*)::int as n from operations.operations')
    if (operations !== jobs.length) differ.push(`${operations} operations of ${jobs.length} starts`)
    for (const found of await readModelDifferences(db)) differ.push(`a read model differs: ${JSON.stringify(found)}`)
    for (const { app, table } of AUDIT_LOGS) {
      const keys = secretKeysOf(JSON.parse(stack.context.keys.secretKeys(app))).map((key) => deriveKey(key, 'audit'))
      const { fault } = await verifyLog(db, table, keys)
      if (fault) differ.push(`${table}: ${fault}`)
    }
  } finally {
    await close()
  }
  return differ
}
