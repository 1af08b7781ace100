import { patchSubject } from '../../shared/contracts/client/digest.ts'
import type { Patch, PatchReply } from '../../shared/contracts/operations/patches.ts'
import { type Command, type Context, needed, opOption, readDocument, text, type Values, wholeId } from '../command.ts'
import { usageError } from '../errors.ts'
import { confirm } from '../terminal/ask.ts'
import { fieldLines, firstOf, minute, moment, short, word, zoned } from '../terminal/output.ts'
import { approve, COMMENT, reviewed, trialOf, withDryRun } from './gate.ts'
import { operationId } from './operation.ts'

const OP = opOption('patch')

/** Patches: changes to the graph of a running operation, each decided on exactly the subject that was shown. */
export const patchCommands: Command[] = [
  {
    name: 'patch list',
    about: 'Lists the patches of an operation, in the order of proposal.',
    examples: ['patch list --op 77b0aa'],
    options: OP,
    run: async (context, _, values) => {
      const { api, out, all } = context
      out.list(await api.list<Patch>(await patchesOf(context, values), {}, all), 'patch_id', [
        ['id', ({ patch_id }) => short(patch_id)],
        ['status', ({ status }) => word(status)],
        ['by', ({ proposer }) => proposer.name],
        ['changes', ({ diff_graph }) => counts(diff_graph)],
        [zoned('until'), ({ status, expires_at }) => (status === 'awaiting_approval' ? minute(expires_at) : '')],
        ['reason', ({ reason }) => reason],
      ])
    },
  },
  {
    name: 'patch show',
    takes: 'PATCH',
    about: 'Shows what a patch changes, what it holds, who must agree, and the digest that an approval names.',
    examples: ['patch show 5d21f0 --op 77b0aa'],
    options: OP,
    run: async (context, [given = ''], values) => {
      const { patch } = await readPatch(context, given, values)
      context.out.one(patch, 'patch_id', patchLines)
    },
  },
  {
    name: 'patch propose',
    about:
      'Proposes changes from a file: a list of changes, or {base_revision, changes}; - is stdin. --dry-run checks them.',
    examples: ["patch propose --op 77b0aa -f changes.yaml --reason 'reinstall the host' --dry-run"],
    options: {
      ...OP,
      file: { type: 'string', short: 'f', value: 'FILE', about: 'the file of changes; - is stdin' },
      reason: { type: 'string', value: 'TEXT', about: 'why; recorded' },
      ticket: { type: 'string', about: 'the ticket that explains it' },
    },
    run: async (context, _, values) => {
      const { api, out, yes, dry_run } = context
      const path = await patchesOf(context, values)
      const reason = needed(values, 'reason')
      const proposal = await proposalOf(context, path, readDocument(needed(values, 'file')))
      const body = { ...proposal, reason, ticket: text(values, 'ticket') }
      const effect = await trialOf<Patch>(context, path, body)
      if (effect && dry_run) return out.one(effect, () => '', effectLines)
      if (effect) out.review(effect, effectLines)
      if (!yes) await confirm('Propose this?')
      const again = `, and base_revision ${body.base_revision} in the file`
      const { body: made } = await api.send<PatchReply>('POST', path, body, {}, again)
      out.one(made, 'patch_id', ({ status, patch_id, operation_id }) => [
        `${word(status)}   patch ${patch_id}`,
        `Next: signalbox patch show ${short(patch_id)} --op ${short(operation_id)}`,
      ])
    },
  },
  {
    name: 'patch approve',
    takes: 'PATCH',
    about: 'Approves what is shown. Without a terminal, --yes needs --digest: the one that was reviewed.',
    examples: ['patch approve 5d21f0 --op 77b0aa'],
    options: { ...OP, digest: { type: 'string', about: 'the digest that you reviewed' }, ...COMMENT },
    run: async (context, [given = ''], values) => {
      const { patch, path } = await readPatch(context, given, values)
      const reviewed_digest = await reviewed(context, subjectOf(context, patch), text(values, 'digest'))
      const body = { reviewed_digest, comment: text(values, 'comment') }
      tell(context, await approve<Decided>(context, path, body))
    },
  },
  {
    name: 'patch reject',
    takes: 'PATCH',
    about: 'Rejects a patch, with the reason; its proposer withdraws it this way.',
    examples: ["patch reject 5d21f0 --op 77b0aa --comment 'not needed'"],
    options: { ...OP, ...COMMENT },
    run: async (context, [given = ''], values) => {
      const comment = needed(values, 'comment')
      const { patch, path } = await readPatch(context, given, values)
      if (!context.yes && !context.dry_run) await confirm(`Reject "${patch.reason}"?`)
      tell(context, await context.api.post<Decided>(`${path}/reject`, withDryRun(context, { comment })))
    },
  },
]

type Decided = Patch & { dry_run?: true; effect?: Record<string, unknown> }

const tell = ({ out }: Context, decided: Decided): void =>
  out.one(decided, 'patch_id', ({ patch_id, status, applied_revision, dry_run, effect }) =>
    dry_run
      ? [`Would be: ${JSON.stringify(effect)}`]
      : [`${word(status)}   patch ${patch_id}${applied_revision === null ? '' : `, revision ${applied_revision}`}`],
  )

const patchesOf = async (context: Context, values: Values): Promise<string> =>
  `/api/v1/operations/${await operationId(context, needed(values, 'op'))}/patches`

const readPatch = async (context: Context, given: string, values: Values) => {
  const list = await patchesOf(context, values)
  const path = `${list}/${await wholeId<Patch>(context, given, list, ({ patch_id }) => patch_id)}`
  return { path, patch: await context.api.get<Patch>(path) }
}

/** The file holds only the changes, for the current graph, or also names the revision that they were made for. */
const proposalOf = async ({ api, idempotency_key }: Context, path: string, document: unknown) => {
  const given: Partial<Patch> | null = Array.isArray(document) ? { changes: document } : (document as Partial<Patch>)
  if (!Array.isArray(given?.changes)) throw usageError('The file holds neither a list of changes nor {changes: […]}.')
  const { changes } = given
  const base_revision = given.base_revision ?? undefined
  if (base_revision !== undefined) return { base_revision, changes }
  // The graph may have another revision now, and a repeat must be the same request.
  if (idempotency_key !== undefined)
    throw usageError('base_revision is missing in the file, which must name it with --idempotency-key.')
  const { plan_revision } = await api.get<{ plan_revision: number }>(path.replace(/\/patches$/, ''))
  return { base_revision: plan_revision, changes }
}

const subjectOf = ({ out }: Context, patch: Patch) => ({
  ...{ noun: 'patch', digest: patch.digest, subject: patchSubject(patch) },
  show: () => out.review(patch, patchLines),
})

type Diff = Patch['diff_graph']

const counts = ({ added, changed, removed, added_gates, removed_gates }: Diff): string =>
  `+${added.length + added_gates.length} ~${changed.length} -${removed.length + removed_gates.length}`

const diffLines = (diff: Diff): string[] => {
  const { added, changed, removed, added_gates, removed_gates, max_parallel } = diff
  return firstOf([
    ...added.map((id) => `  + add      ${id}`),
    ...changed.flatMap(({ node_id, fields }) => fieldLines(`  ~ change   ${node_id}   `, fields)),
    ...removed.map((id) => `  - remove   ${id}`),
    ...added_gates.map((id) => `  + add      gate ${id}`),
    ...removed_gates.map((id) => `  - remove   gate ${id}`),
    ...(max_parallel ? [`  ~ change   at most ${max_parallel.before} -> ${max_parallel.after} nodes at a time`] : []),
  ])
}

const effectLines = ({
  diff_graph,
  held_nodes,
  rearmed_gates,
}: Pick<Patch, 'diff_graph' | 'held_nodes' | 'rearmed_gates'>) => [
  ...diffLines(diff_graph),
  held_nodes.length === 0 ? '  holds no node' : `  held until decided: ${held_nodes.join(', ')}`,
  ...(rearmed_gates.length > 0 ? [`  asks again: ${rearmed_gates.join(', ')}`] : []),
]

const patchLines = (patch: Patch): string[] => {
  const { patch_id, operation_id, status, required, votes, decided } = patch
  const { proposer, reason, ticket } = patch.asked ?? patch
  const groups = required.groups.map(({ group }) => group).join(', ') || 'those who hold patch:decide'
  return [
    `${word(status)}   patch ${patch_id}   by ${proposer.name}, on revision ${patch.base_revision}`,
    `  ${reason}${ticket ? `   ${ticket}` : ''}`,
    ...effectLines(patch),
    `  needs ${required.quorum} of ${groups}${required.four_eyes ? ', except its proposer' : ''}; ${votes.length} voted`,
    ...votes.map(({ actor, decision, comment }) => `    ${decision} by ${actor.name}${comment ? `: ${comment}` : ''}`),
    ...(decided ? [`  decided by ${decided.by.name} at ${moment(decided.at)}`] : []),
    ...(patch.status_reason ? [`  ${patch.status_reason}${patch.rebase ? ': propose the same again' : ''}`] : []),
    `  digest ${patch.digest}`,
    ...(status === 'awaiting_approval'
      ? [`Next: signalbox patch approve ${short(patch_id)} --op ${short(operation_id)}`]
      : []),
  ]
}
