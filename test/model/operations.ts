import type { GateBook, NodeBook, OperationBook } from './books.ts'
import { chance, type Model, told } from './commands.ts'
import { OPERATORS } from './people.ts'

/** A node that brings a value to a host; the host's own ledger shows which. Null: the catalog's value for the host. */
export const nodeOf = (
  node_id: string,
  host: string,
  does: string | null,
  depends_on: string[],
  more: object = {},
) => ({
  node_id,
  executor: 'http',
  target_id: host,
  depends_on,
  idempotent: true,
  secrets: { token: 'secret://file/fleet-token#1' },
  with: {
    base_url: { $from: 'target/observed_state/base_url' },
    headers: { authorization: { $secret: 'token' } },
    request: { method: 'POST', url: '/deploy', body: { release: does ?? { $from: 'target/desired_state/release' } } },
  },
  retry: { max_attempts: 2, initial_s: 1 },
  ...more,
})

const MAX_NODES = 4

/** `between`: an act between the plan and its start; `chain`: two nodes in sequence, both behind one gate. */
type Wanted = { between?: (book: OperationBook, start: () => Promise<unknown>) => Promise<unknown>; chain?: boolean }

/** States, plans and starts an operation with a few nodes and gates; `undefined` if a step was refused. */
export const begin = async (
  model: Model,
  { between = (_book, start) => start(), chain = false }: Wanted = {},
): Promise<OperationBook | undefined> => {
  const { dice, crowd, hosts } = model
  const n = model.next()
  const [requester, starter] = [dice.pick(OPERATORS), dice.pick(OPERATORS)]
  const own = Array.from({ length: chain || chance(dice, 0.6) ? 1 : 2 }, () => dice.pick(hosts))
  const act = { from: Date.now(), to: Number.POSITIVE_INFINITY, outcome: 'unknown' as const }
  const nodes = new Map<string, NodeBook>()
  const specs: ReturnType<typeof nodeOf>[] = []
  const count = chain ? 2 : Math.floor(dice.between(2, MAX_NODES + 1))
  for (let i = 0; i < count; i++) {
    const node_id = `n${i}`
    const host = dice.pick(own)
    const does = chance(dice, 0.6) ? `o${n}-${node_id}-v1` : null
    const depends_on = i === 0 || (!chain && chance(dice, 0.2)) ? [] : [`n${Math.floor(dice.between(0, i))}`]
    const undo = chance(dice, 0.3) && {
      compensate: { executor: 'http', idempotent: true, with: nodeOf(node_id, host, `o${n}-${node_id}-undo`, []).with },
    }
    specs.push(nodeOf(node_id, host, does, depends_on, undo || {}))
    nodes.set(node_id, { node_id, host, stated: does === null ? null : [{ does, act }] })
  }
  const gates = chain
    ? [gateOf(model, 'g0', specs, 'n0')]
    : Array.from({ length: dice.pick([1, 1, 1, 2]) }, (_, i) => gateOf(model, `g${i}`, specs))
  const graph = { nodes: specs, gates: gates.map(({ spec }) => spec) }
  const asRequester = crowd.of(requester)
  const intent = await asRequester.call('POST', '/v1/intents', {
    kind: 'graph',
    title: `model ${n}`,
    reason: 'the model',
    graph,
  })
  told(model, 'state intent', intent)
  if (intent.outcome !== 'done') return undefined
  const plan = await asRequester.call('POST', `/v1/intents/${intent.body.intent_id}/plan-preview`, {})
  told(model, 'plan', plan)
  if (plan.outcome !== 'done') return undefined
  const book: OperationBook = {
    operation_id: '',
    involved: [requester, starter],
    planned: { from: plan.from, to: plan.to, outcome: plan.outcome },
    started: act,
    nodes,
    gates: new Map(gates.map(({ book }) => [book.gate_id, book])),
    patches: [],
    pauses: [],
    resumes: [],
    cancels: [],
    seen_paused: [],
    status: 'queued',
    seen_ended: null,
    told: [
      `graph ${JSON.stringify(specs.map(({ node_id, target_id, depends_on }) => ({ node_id, target_id, depends_on })))}`,
      `gates ${JSON.stringify(graph.gates)}`,
    ],
  }
  await between(book, async () => {
    const sent = { reviewed_plan_hash: plan.body.plan_hash }
    const path = `/v1/plans/${plan.body.plan_id}/start`
    const started = await crowd.of(starter).call('POST', path, sent, { twice: chance(dice, 0.1) })
    told(model, 'start', started, book, `${starter} (stated by ${requester})`)
    if (started.outcome !== 'done') return
    const { from, to, outcome } = started
    Object.assign(book, { operation_id: started.body.operation_id, started: { from, to, outcome } })
    model.books.operations.set(book.operation_id, book)
  })
  return book.operation_id ? book : undefined
}

const gateOf = (
  { dice }: Model,
  gate_id: string,
  nodes: readonly { node_id: string; depends_on: string[] }[],
  all_behind?: string,
) => {
  const quorum = dice.pick([1, 1, 2])
  const group = chance(dice, 0.8) ? 'netops' : null
  const guarded = all_behind ?? dice.pick(nodes).node_id
  const approvals = { quorum, ...(group && { groups: [{ group, min: quorum }] }) }
  const policy = { approvals, deadline_s: 3600, on_reject: dice.pick(['fail_nodes', 'hold'] as const) }
  // In the order of the graph, so that one pass finds all nodes behind.
  const cone = new Set([guarded])
  for (const { node_id, depends_on } of nodes) if (depends_on.some((id) => cone.has(id))) cone.add(node_id)
  const guards = all_behind === undefined && chance(dice, 0.5) ? [guarded] : [...cone]
  const book: GateBook = { gate_id, quorum, group, guards, cone, votes: [] }
  return { book, spec: { gate_id, policy, guards } }
}
