import { setTimeout as delay } from 'node:timers/promises'
import { ApiError, type Person, waitUntil } from '../../apps/platform/demo/client.ts'
import type { FleetClient } from '../../apps/platform/demo/fleet.ts'
import { approveGate, releaseIntent, startOperation } from '../../apps/platform/demo/operations.ts'
import type { Dice } from './dice.ts'
import { readLedger } from './ledger.ts'

/** What happens to an operation on its way, apart from the kills. */
export const KINDS = ['approved', 'paused', 'retried', 'patched', 'unsure', 'undone'] as const
export type Kind = (typeof KINDS)[number]

export type World = {
  operator: Person
  approver: Person
  fleet: FleetClient
  fleet_url: string
  dice: Dice
  patience_ms: number
  breach: (what: string) => void
}

/** A release on three hosts: its expected effects, and how it ended. */
export type Job = {
  name: string
  kind: Kind
  hosts: string[]
  release: string
  operation_id?: string
  status?: string
  stated?: boolean
  /** The generation of the uncertain node that was last decided: the decision may take effect some looks later. */
  decided?: number
}

type Operation = {
  operation_id: string
  status: string
  pause_reason: string | null
  revision: number
  progress: { done: number; failed: number }
}
type Gate = { gate_id: string; status: string; round: number; digest: string; question: string }

const ENDED = new Set(['succeeded', 'succeeded_with_exceptions', 'failed', 'cancelled', 'timed_out'])
export const hasEnded = ({ status }: Pick<Job, 'status'>): boolean => ENDED.has(status ?? '')

const REPLANS = 20
/** The release that every host runs at first. */
export const FIRST_RELEASE = '1.0.0'

/** The effects of this job's operation, if each happens exactly once. */
export const expectedOf = ({ kind, hosts }: Job): string[] => {
  const [canary = ''] = hosts
  const released = (host: string) => ['drain', 'deploy', 'undrain'].map((effect) => `${host} ${effect}`)
  // Cancelled at the gate, after only the canary was changed: the same three acts undo it in reverse.
  if (kind === 'undone') return [...released(canary), ...released(canary)]
  return [...hosts.flatMap(released), ...(adds(kind) ? [`${canary} restart`] : [])]
}

export const expectedStatus = ({ kind, stated }: Job): string => {
  if (kind === 'undone') return 'cancelled'
  return stated ? 'succeeded_with_exceptions' : 'succeeded'
}

/** A patch adds a restart. The restart of `unsure` must not be repeated, and its host never answers. */
const adds = (kind: Kind): boolean => kind === 'patched' || kind === 'unsure'

/** Starts a job's operation and brings it to its end, as an operator and an approver would. */
export const runJob = async (world: World, job: Job): Promise<void> => {
  const { fleet } = world
  const broken = job.hosts.at(-1) ?? ''
  if (job.kind === 'retried') await fleet.setFaults(broken, { refuse_with: 409 })
  const operation_id = await start(world, job)
  job.operation_id = operation_id
  const path = `/v1/operations/${operation_id}`
  const acts = actsOf(world, job, path)
  const end = performance.now() + world.patience_ms
  let revision = 0
  for (;;) {
    const operation = await world.operator.get<Operation>(path)
    if (operation.revision < revision)
      world.breach(`${job.name}: revision ${operation.revision} was read after ${revision}`)
    revision = operation.revision
    job.status = operation.status
    if (hasEnded(operation)) return
    if (performance.now() > end) throw new Error(`it did not end: ${JSON.stringify(operation).slice(0, 600)}`)
    await acts(operation)
    await delay(500)
  }
}

/** States, plans and starts it; if the catalog changed between plan and start, plans it again. */
const start = async ({ operator }: World, { name, hosts, release }: Job): Promise<string> => {
  for (let n = 1; ; n++) {
    try {
      const key = `${name}, plan ${n}`
      return (await startOperation(operator, key, releaseIntent(name, hosts, release))).operation_id
    } catch (error) {
      const moved = error instanceof ApiError && error.body.category === 'stale_catalog_projection'
      if (!moved || n === REPLANS) throw error
      await delay(500)
    }
  }
}

/** The people's actions at each look: each once, in the order of its kind. */
const actsOf = (world: World, job: Job, path: string) => {
  const { operator, approver, fleet, dice } = world
  let special = job.kind === 'approved'
  const pauseAfter = Math.floor(dice.between(0, 4))
  const mend = async () => {
    const host = job.hosts.at(-1) ?? ''
    await fleet.setFaults(host, {})
    await operator.post(`${path}/nodes/drain.${host}/retry`, { reason: 'it is mended' }, `${job.name} retry`)
  }

  return async (operation: Operation): Promise<void> => {
    if (operation.status === 'paused' && operation.pause_reason === 'catalog_drift')
      return resume(world, job, path, operation)
    if (job.kind === 'paused' && !special && operation.progress.done >= pauseAfter) {
      special = true
      await pauseAndResume(world, job, path)
    }
    if (job.kind === 'retried' && !special && operation.progress.failed > 0) {
      special = true
      await mend()
    }
    if (job.kind === 'unsure' && special && operation.status === 'blocked') await findOut(world, job, path)
    const gate = await waitingGate(approver, path)
    if (!gate) return
    if (adds(job.kind) && !special) {
      special = true
      await patch(world, job, path)
    }
    if (job.kind === 'undone') {
      if (!special)
        await operator.post(`${path}/cancel`, { mode: 'compensate', reason: 'take it back' }, `${job.name} cancel`)
      special = true
      return
    }
    await approve(world, path, gate)
  }
}

const waitingGate = async (approver: Person, path: string): Promise<Gate | undefined> => {
  const { items } = await approver.get<{ items: Gate[] }>(`${path}/gates?status=waiting`)
  const [gate] = items
  return gate && approver.get<Gate>(`${path}/gates/${gate.gate_id}`)
}

/** Approves what was read; a gate that asked again in the meantime is read again at the next look. */
const approve = async ({ approver }: World, path: string, gate: Gate): Promise<void> => {
  try {
    await approveGate(approver, path.split('/').at(-1) ?? '', gate, 'read and approved')
  } catch (error) {
    if (!(error instanceof ApiError) || ![409, 412].includes(error.status)) throw error
  }
}

/** From `paused` until the resume nothing may reach a host. */
const pauseAndResume = async (world: World, job: Job, path: string): Promise<void> => {
  const { operator, fleet_url, dice, breach } = world
  const look = () => operator.get<Operation>(path)
  try {
    await operator.post(`${path}/pause`, { reason: 'a look' }, `${job.name} pause`)
  } catch (error) {
    // It may have ended in the meantime.
    if (error instanceof ApiError && error.body.code === 'operation_terminal') return
    throw error
  }
  await waitUntil(`the pause of ${job.name}`, look, ({ status }) => status === 'paused', world.patience_ms)
  const effects = async () =>
    (await readLedger(fleet_url)).filter(({ operation_id }) => operation_id === job.operation_id).length
  const before = await effects()
  await delay(dice.between(500, 3000))
  const after = await effects()
  if (after !== before) breach(`${job.name}: ${after - before} effects while it was paused`)
  await resume(world, job, path, await look())
}

/**
 * Resumes after a change in the catalog. A plan may be made while news of the last operation on a host is in flight; it
 * pauses when the news arrives, and a person accepts the new values.
 */
const resume = async ({ operator }: World, job: Job, path: string, { revision }: Operation): Promise<void> => {
  await operator.post(`${path}/resume`, { reason: 'go on', acknowledge_drift: true }, `${job.name} resume ${revision}`)
}

type Patch = { patch_id: string; digest: string }

/** Adds a restart of the canary, which someone else approves. */
const patch = async ({ operator, approver, fleet }: World, job: Job, path: string): Promise<void> => {
  const [canary = ''] = job.hosts
  const host = (await fleet.hosts()).find(({ hostname }) => hostname === canary)
  const node = {
    node_id: 'extra',
    executor: 'http',
    idempotent: job.kind === 'patched',
    depends_on: [`undrain.${canary}`],
    secrets: { token: 'secret://file/fleet-token#1' },
    with: {
      base_url: host?.base_url,
      headers: { authorization: { $secret: 'token' } },
      request: { method: 'POST', url: '/restart', body: {} },
    },
    ...(job.kind === 'patched' ? { retry: { max_attempts: 3, initial_s: 1 } } : { timeouts: { run_s: 5 } }),
  }
  if (job.kind === 'unsure') await fleet.setFaults(canary, { swallow_answers: true })
  const proposal = { base_revision: 1, changes: [{ op: 'add_node', node }], reason: 'restart it as well' }
  const { body } = await operator.post<Patch>(`${path}/patches`, proposal, `${job.name} patch`)
  const vote = { reviewed_digest: body.digest }
  await approver.post(`${path}/patches/${body.patch_id}/approve`, vote, `${job.name} patch vote`)
}

/** Whether the restart happened is unknown: a person looks at the host, then states the outcome or has it restarted. */
const findOut = async ({ operator, fleet, fleet_url }: World, job: Job, path: string): Promise<void> => {
  const [canary = ''] = job.hosts
  const { state, generation } = await operator.get<{ state: string; generation: number }>(`${path}/nodes/extra`)
  if (state !== 'outcome_unknown' || job.decided === generation) return
  await fleet.setFaults(canary, {})
  const happened = (await readLedger(fleet_url)).some(
    ({ operation_id, hostname, effect }) =>
      operation_id === job.operation_id && hostname === canary && effect === 'restart',
  )
  const key = `${job.name} found out ${generation}`
  if (!happened) {
    await operator.post(`${path}/nodes/extra/retry`, { reason: 'the host did not restart' }, key)
    job.decided = generation
    return
  }
  const stated = { type: 'mark_succeeded', node_id: 'extra', payload: { outputs: {}, note: 'the host restarted' } }
  await operator.post(`${path}/interventions`, { ...stated, reason: 'looked at the host' }, key)
  job.decided = generation
  job.stated = true
}
