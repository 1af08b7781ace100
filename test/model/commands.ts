import type { Dice } from '../chaos/dice.ts'
import type { Act, Books, GateBook, NodeBook, OperationBook, Vote } from './books.ts'
import { clock } from './judge.ts'
import { type Answer, type Crowd, OPERATORS, VOTERS } from './people.ts'

/** Shared by the steps: the crowd that acts, the dice that choose, and the books that are kept. */
export type Model = {
  crowd: Crowd
  dice: Dice
  books: Books
  hosts: string[]
  /** Steps done: each is one command that was sent, or a change of the surroundings. */
  steps: Map<string, number>
  /** Answers by request: for people who check the progress of the model. */
  answers: Map<string, number>
  /** A number for anything that must be unique. */
  next: () => number
  breach: (operation_id: string, what: string) => void
}

export const chance = (dice: Dice, share: number): boolean => dice.between(0, 1) < share

export const draw = <T>(dice: Dice, table: readonly [number, T][]): T => {
  let at = dice.between(
    0,
    table.reduce((sum, [weight]) => sum + weight, 0),
  )
  for (const [weight, item] of table) {
    at -= weight
    if (at < 0) return item
  }
  throw new Error('an empty table')
}

/** Counts a step, and records it for readers of a breach. */
export const told = (
  model: Model,
  what: string,
  answer: Act & Partial<Answer>,
  book?: OperationBook,
  who = '',
): void => {
  model.steps.set(what, (model.steps.get(what) ?? 0) + 1)
  const said = answer.outcome === 'refused' ? `refused ${answer.status} ${answer.code}` : answer.outcome
  model.answers.set(`${what}: ${said}`, (model.answers.get(`${what}: ${said}`) ?? 0) + 1)
  if ((answer.status ?? 0) === 500)
    model.breach(book?.operation_id ?? '-', `${what} was answered 500: ${JSON.stringify(answer.body).slice(0, 300)}`)
  book?.told.push(
    `${clock(answer.from)} +${Number.isFinite(answer.to) ? answer.to - answer.from : '?'} ms  ${who} ${what}: ${said}`,
  )
}

const reason = 'a step of the model'

/** What a node will do, as the paper of a gate or a patch shows it. */
// biome-ignore lint/suspicious/noExplicitAny: papers are read as people read them
const doesOf = (inputs: any): string => String(inputs?.request?.body?.release ?? '')

/** Reads a gate as this person does: the given one, or one of the open gates. */
export const readGate = async (
  model: Model,
  book: OperationBook,
  who: string,
  { only, among = ['waiting', 'approved'] }: { only?: string; among?: readonly string[] } = {},
) => {
  const path = `/v1/operations/${book.operation_id}/gates`
  const list = await model.crowd.of(who).get(`${path}?${among.map((status) => `status=${status}`).join('&')}`)
  const open: { gate_id: string }[] = (list.body?.items ?? []).filter(
    ({ gate_id }: { gate_id: string }) => book.gates.has(gate_id) && gate_id === (only ?? gate_id),
  )
  if (list.outcome !== 'done' || open.length === 0) return undefined
  const { gate_id } = model.dice.pick(open)
  const { outcome, body } = await model.crowd.of(who).get(`${path}/${gate_id}`)
  const gate = book.gates.get(gate_id)
  if (outcome !== 'done' || !gate) return undefined
  const paper = new Map<string, string>()
  for (const { node_id, inputs } of body.subject.releases) paper.set(node_id, doesOf(inputs))
  return { gate, paper, digest: body.digest as string, round: body.round as number }
}
export type Read = NonNullable<Awaited<ReturnType<typeof readGate>>>
/** Papers that someone has read and not yet voted on: the next vote may be on any of these, however old. */
const kept = new WeakMap<OperationBook, Read[]>()

/** A vote is in the books before its answer: what it releases may begin before that. */
const cast = async (votes: Vote[], vote: Vote, send: () => Promise<Answer>): Promise<Answer> => {
  votes.push(vote)
  const { from, to, outcome, ...answer } = await send()
  Object.assign(vote, { from, to, outcome })
  return { from, to, outcome, ...answer }
}
const opened = (): Act => ({ from: Date.now(), to: Number.POSITIVE_INFINITY, outcome: 'unknown' })

export const vote = async (
  model: Model,
  book: OperationBook,
  decision: Vote['decision'] = 'approve',
): Promise<void> => {
  const { dice } = model
  const who = dice.pick(VOTERS)
  const stale = kept.get(book) ?? []
  const read = stale.length > 0 && chance(dice, 0.15) ? dice.pick(stale) : await readGate(model, book, who)
  if (!read) return
  if (chance(dice, 0.2)) kept.set(book, [...stale.slice(-3), read])
  await decide(model, book, who, read, decision)
}

/** Decides on what was read. */
export const decide = async (
  model: Model,
  book: OperationBook,
  who: string,
  { gate, paper, digest, round }: Read,
  decision: Vote['decision'] = 'approve',
): Promise<Answer> => {
  const { dice, crowd } = model
  const path = `/v1/operations/${book.operation_id}/gates/${gate.gate_id}/${decision}`
  const body = decision === 'approve' ? { reviewed_digest: digest, round } : { round, comment: 'no' }
  const given: Vote = { ...opened(), voter: who, decision, paper }
  const answer = await cast(gate.votes, given, () =>
    crowd.of(who).call('POST', path, body, { twice: chance(dice, 0.05) }),
  )
  given.opened = answer.outcome === 'done' && answer.body?.status === 'approved' && answer.body.round === round
  const shown = [...paper].map(([node, does]) => `${node}=${does}`).join(' ')
  told(model, `${decision} gate`, answer, book, `${who} (${gate.gate_id} round ${round}: ${shown})`)
  return answer
}

/** Someone takes their own approval back before it is used. */
export const takeBack = async (model: Model, book: OperationBook): Promise<void> => {
  const given = [...book.gates.values()].flatMap(({ gate_id, votes }) =>
    votes
      .filter(({ outcome, decision }) => outcome === 'done' && decision === 'approve')
      .map(({ voter }) => ({ gate_id, voter })),
  )
  if (given.length === 0) return
  const { gate_id, voter } = model.dice.pick(given)
  const path = `/v1/operations/${book.operation_id}/gates/${gate_id}`
  const { outcome, body } = await model.crowd.of(voter).get(path)
  const gate = book.gates.get(gate_id) as GateBook
  if (outcome !== 'done') return
  const act: Vote = { ...opened(), voter, decision: 'reject', paper: new Map() }
  const sent = { round: body.round, comment: 'taken back' }
  const answer = await cast(gate.votes, act, () => model.crowd.of(voter).call('POST', `${path}/reject`, sent))
  told(model, 'take back', answer, book, `${voter} (${gate_id})`)
}

/** Sends a command that stops or starts an operation, and records it with the others of its kind. */
const control = async <A extends Act>(
  model: Model,
  book: OperationBook,
  acts: A[],
  act: A,
  verb: string,
  body: object,
): Promise<void> => {
  const who = model.dice.pick(OPERATORS)
  acts.push(act)
  const path = `/v1/operations/${book.operation_id}/${verb}`
  const answer = await model.crowd.of(who).call('POST', path, { reason, ...body }, { twice: chance(model.dice, 0.1) })
  const { from, to, outcome } = answer
  Object.assign(act, { from, to, outcome })
  told(model, 'mode' in body ? `${verb} ${body.mode}` : verb, answer, book, who)
}
export const pause = (model: Model, book: OperationBook) => control(model, book, book.pauses, opened(), 'pause', {})
export const resume = (model: Model, book: OperationBook) =>
  control(model, book, book.resumes, opened(), 'resume', chance(model.dice, 0.8) ? { acknowledge_drift: true } : {})
export const cancel = (model: Model, book: OperationBook) => {
  const again = book.cancels.some(({ outcome }) => outcome === 'done')
  const mode = model.dice.pick(
    again ? (['force', 'compensate'] as const) : (['graceful', 'graceful', 'compensate'] as const),
  )
  return control(model, book, book.cancels, { ...opened(), mode }, 'cancel', { mode })
}

/** Other input for a node: from then on it acts as stated here, or as before. */
const restate = async (
  model: Model,
  book: OperationBook,
  what: string,
  send: (node_id: string, input: object) => [string, object],
  node = model.dice.pick([...book.nodes.values()]),
) => {
  const { dice, crowd } = model
  if (!node.stated) return
  const who = dice.pick(OPERATORS)
  const does = `${node.node_id}-v${model.next()}`
  const act = opened()
  node.stated.push({ does, act, by: who })
  const [path, body] = send(node.node_id, { request: { method: 'POST', url: '/deploy', body: { release: does } } })
  const answer = await crowd.of(who).call('POST', `/v1/operations/${book.operation_id}${path}`, body)
  // Recorded, but not yet taken by the engine: it may still refuse.
  const outcome = answer.status === 202 ? 'unknown' : answer.outcome
  Object.assign(act, { from: answer.from, to: answer.to, outcome })
  told(model, what, answer, book, `${who} (${node.node_id}: ${does})`)
}
export const setInput = (model: Model, book: OperationBook, node?: NodeBook) =>
  restate(
    model,
    book,
    'set input',
    (node_id, input_overrides) => [
      '/interventions',
      { type: 'set_input', node_id, payload: { input_overrides }, reason },
    ],
    node,
  )
export const retryOtherwise = (model: Model, book: OperationBook) =>
  restate(model, book, 'retry with other input', (node_id, input_overrides) => [
    `/nodes/${node_id}/retry`,
    { reason, input_overrides, reconciliation: FOUND },
  ])

const FOUND = { finding: 'effect_absent', note: 'looked' }

/** A halted node, or any. */
const pickNode = async (model: Model, book: OperationBook, who: string): Promise<string> => {
  const { body } = await model.crowd.of(who).get(`/v1/operations/${book.operation_id}/nodes?page_size=50`)
  const items: { node_id: string; state: string }[] = body?.items ?? []
  const failed = items.filter(({ state }) => ['failed', 'outcome_unknown', 'skipped'].includes(state))
  return (failed.length > 0 ? model.dice.pick(failed) : model.dice.pick([...book.nodes.values()])).node_id
}

export const retry = async (model: Model, book: OperationBook): Promise<void> => {
  const who = model.dice.pick(OPERATORS)
  const node_id = await pickNode(model, book, who)
  const path = `/v1/operations/${book.operation_id}/nodes/${node_id}/retry`
  const answer = await model.crowd.of(who).call('POST', path, { reason, reconciliation: FOUND })
  told(model, 'retry', answer, book, `${who} (${node_id})`)
}

export const skip = async (model: Model, book: OperationBook): Promise<void> => {
  const who = model.dice.pick(OPERATORS)
  const node_id = await pickNode(model, book, who)
  const body = { type: 'skip', node_id, payload: {}, reason }
  const answer = await model.crowd.of(who).call('POST', `/v1/operations/${book.operation_id}/interventions`, body)
  told(model, 'skip', answer, book, `${who} (${node_id})`)
}
