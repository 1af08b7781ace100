import type { Gate } from '../../shared/contracts/operations/gates.ts'
import { OPERATION_ENDS } from '../../shared/contracts/operations/graph.ts'
import type { Operation } from '../../shared/contracts/operations/operations.ts'
import type { PlanView } from '../../shared/contracts/operations/plans.ts'
import { ENDLESS, type Person, waitUntil } from './client.ts'

/** The newest operation with exactly this title, if one exists. */
export const operationNamed = async (person: Person, title: string): Promise<Operation | undefined> => {
  const query = new URLSearchParams({ q: title, page_size: '50' })
  const { items } = await person.get<{ items: Operation[] }>(`/v1/operations?${query}`)
  return items.find((operation) => operation.title === title)
}

/** Intent, plan and start, as an operator makes a change. Returns the running operation with its plan. */
export const startOperation = async (
  operator: Person,
  name: string,
  intent: Record<string, unknown>,
): Promise<Operation & { plan: PlanView }> => {
  const { body: created } = await operator.post<{ intent_id: string }>('/v1/intents', intent, `intent ${name}`)
  // Makes a new plan each time, because that of an earlier try may be too old to start.
  const { body: plan } = await operator.post<PlanView>(
    `/v1/intents/${created.intent_id}/plan-preview`,
    {},
    `plan ${name} ${crypto.randomUUID()}`,
  )
  const { body: operation } = await operator.post<Operation>(
    `/v1/plans/${plan.plan_id}/start`,
    { reviewed_plan_hash: plan.plan_hash },
    `start ${plan.plan_id}`,
  )
  return { ...operation, plan }
}

export const readOperation = (person: Person, operation_id: string) =>
  person.get<Operation>(`/v1/operations/${operation_id}`)

/** Waits until a gate of the operation asks, and returns what the person will read. */
export const waitForGate = async (person: Person, operation_id: string): Promise<Gate> => {
  const waiting = async () =>
    (await person.get<{ items: Gate[] }>(`/v1/operations/${operation_id}/gates`)).items.find(isWaiting)
  const gate = await waitUntil('a waiting gate', waiting, (found) => found !== undefined, 180_000)
  return person.get<Gate>(`/v1/operations/${operation_id}/gates/${gate?.gate_id}`)
}
const isWaiting = ({ status }: Gate): boolean => status === 'waiting'

const OPEN = new Set(['armed', 'waiting'])

/** Waits until a gate of the operation asks, and returns it; `undefined` once all are decided or the operation ends. */
export const askingGate = async (person: Person, operation_id: string): Promise<Gate | undefined> => {
  const look = async () => {
    const operation = await readOperation(person, operation_id)
    const { items } = await person.get<{ items: Gate[] }>(`/v1/operations/${operation_id}/gates`)
    const waiting = items.find(isWaiting)
    const decided = items.length > 0 && !items.some((gate) => OPEN.has(gate.status))
    return { waiting, over: decided || ENDED.has(operation.status) }
  }
  const found = await waitUntil('a gate', look, ({ waiting, over }) => over || waiting !== undefined, ENDLESS.ms, 500)
  return found.waiting && person.get<Gate>(`/v1/operations/${operation_id}/gates/${found.waiting.gate_id}`)
}

/** Approves exactly what was read: the vote includes the digest. */
export const approveGate = async (
  approver: Person,
  operation_id: string,
  gate: Pick<Gate, 'gate_id' | 'round' | 'digest'>,
  comment: string,
): Promise<void> => {
  await approver.post(
    `/v1/operations/${operation_id}/gates/${gate.gate_id}/approve`,
    { reviewed_digest: gate.digest, round: gate.round, comment },
    `approve ${operation_id} ${gate.gate_id} ${gate.round}`,
  )
}

/** Waits until this node has failed at least once, whether it is retried or held; false if it succeeds at once. */
export const waitForFailure = async (person: Person, operation_id: string, node_id: string): Promise<boolean> => {
  const failed = ({ state, attempt }: { state: string; attempt: number }) =>
    attempt > 1 || state === 'backoff' || state === 'failed'
  const node = await waitUntil(
    `${node_id} to fail`,
    () => person.get<{ state: string; attempt: number }>(`/v1/operations/${operation_id}/nodes/${node_id}`),
    (seen) => failed(seen) || seen.state === 'succeeded',
    ENDLESS.ms,
  )
  return failed(node) && node.state !== 'succeeded'
}

/** Proposes the fix for a host whose verification fails: a step that reinstalls it before it gets traffic again. */
export const proposeReinstall = (operator: Person, operation_id: string, host: string) => {
  const node_id = `reinstall.${host}`
  const node = {
    node_id,
    name: `Reinstall ${host}`,
    executor: 'http',
    target_id: host,
    depends_on: [`deploy.${host}`],
    idempotent: true,
    secrets: { token: 'secret://file/fleet-token#1' },
    with: {
      base_url: { $from: 'target/observed_state/base_url' },
      headers: { authorization: { $secret: 'token' } },
      request: { method: 'POST', url: '/reinstall' },
    },
  }
  return operator.post(
    `/v1/operations/${operation_id}/patches`,
    {
      base_revision: 1,
      changes: [
        { op: 'add_node', node },
        { op: 'add_dependency', node_id: `undrain.${host}`, depends_on: node_id },
      ],
      reason: `reinstall ${host}; then I retry its check`,
    },
    `patch ${operation_id}`,
  )
}

export const ENDED: ReadonlySet<string> = new Set(OPERATION_ENDS)
export const waitForEnd = (person: Person, operation_id: string, timeout_ms = 180_000) =>
  waitUntil(
    'the end of the operation',
    () => readOperation(person, operation_id),
    (operation) => ENDED.has(operation.status),
    timeout_ms,
  )

export const releaseIntent = (title: string, hosts: string[], release: string) => ({
  kind: 'change',
  title,
  reason: `Bring release ${release} to these hosts`,
  targets: hosts.map((resource_id) => ({ resource_id })),
  change: { op: 'update', desired_state_patch: { release }, parameters: { drain_s: 2 } },
  labels: { environment: 'demo' },
})

export const rotateIntent = (title: string, hosts: string[]) => ({
  kind: 'action',
  title,
  reason: 'Certificates end within the month',
  targets: hosts.map((resource_id) => ({ resource_id })),
  action: { action_key: 'rotate_certificate', parameters: {} },
  labels: { environment: 'demo' },
})
