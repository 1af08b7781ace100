import type { Act, OperationBook, PatchBook, Vote } from './books.ts'
import { chance, type Model, told } from './commands.ts'
import { nodeOf } from './operations.ts'
import { OPERATORS, VOTERS } from './people.ts'

const reason = 'a step of the model'

/** Proposes a further node, behind an existing one or independent of all. */
export const propose = async (model: Model, book: OperationBook): Promise<void> => {
  const { dice, crowd } = model
  const who = dice.pick(OPERATORS)
  const { outcome, body } = await crowd.of(who).get(`/v1/operations/${book.operation_id}`)
  if (outcome !== 'done') return
  const behind = chance(dice, 0.7) ? dice.pick([...book.nodes.values()]) : undefined
  // On a host of the operation: another host would need a lease that the operation does not hold.
  const { host } = behind ?? dice.pick([...book.nodes.values()])
  const node_id = `add${model.next()}`
  const does = `${node_id}-v1`
  const act: Act = { from: Date.now(), to: Number.POSITIVE_INFINITY, outcome: 'unknown' }
  const patch: PatchBook = { patch_id: '', proposer: who, node_id, does, proposed: act, votes: [] }
  const node = nodeOf(node_id, host, does, behind ? [behind.node_id] : [])
  book.nodes.set(node_id, { node_id, host, stated: [{ does, act }] })
  if (behind) for (const { cone } of book.gates.values()) if (cone.has(behind.node_id)) cone.add(node_id)
  const sent = { base_revision: body.plan_revision, changes: [{ op: 'add_node', node }], reason }
  const answer = await crowd.of(who).call('POST', `/v1/operations/${book.operation_id}/patches`, sent)
  Object.assign(act, { from: answer.from, to: answer.to, outcome: answer.outcome })
  if (answer.outcome === 'done') patch.patch_id = answer.body.patch_id
  book.patches.push(patch)
  told(model, 'propose patch', answer, book, `${who} (${node_id} on ${host} after ${behind?.node_id ?? 'the start'})`)
}

const openPatch = async (model: Model, book: OperationBook, who: string) => {
  const { body } = await model.crowd.of(who).get(`/v1/operations/${book.operation_id}/patches?status=awaiting_approval`)
  const items: { patch_id: string; digest: string; changes: { node: { node_id: string; with: unknown } }[] }[] =
    body?.items ?? []
  const known = items.filter(({ patch_id }) => book.patches.some((patch) => patch.patch_id === patch_id))
  return known.length > 0 ? model.dice.pick(known) : undefined
}

/** Decides a patch that someone has read; its proposer withdraws it by rejecting. */
export const decidePatch = async (model: Model, book: OperationBook, decision: Vote['decision']): Promise<void> => {
  const { dice, crowd } = model
  const who = dice.pick(decision === 'approve' ? VOTERS : [...VOTERS, ...OPERATORS])
  const read = await openPatch(model, book, who)
  const patch = book.patches.find(({ patch_id }) => patch_id === read?.patch_id)
  if (!read || !patch) return
  const paper = new Map<string, string>()
  for (const { node } of read.changes) {
    const { request } = node.with as { request: { body: { release: string } } }
    paper.set(node.node_id, request.body.release)
  }
  const path = `/v1/operations/${book.operation_id}/patches/${read.patch_id}/${decision}`
  const body = decision === 'approve' ? { reviewed_digest: read.digest } : { comment: 'no' }
  const given: Vote = {
    from: Date.now(),
    to: Number.POSITIVE_INFINITY,
    outcome: 'unknown',
    voter: who,
    decision,
    paper,
  }
  patch.votes.push(given)
  const answer = await crowd.of(who).call('POST', path, body, { twice: chance(dice, 0.05) })
  Object.assign(given, { from: answer.from, to: answer.to, outcome: answer.outcome })
  told(model, `${decision} patch`, answer, book, `${who} (${read.patch_id}: ${[...paper].join(' ')})`)
}
