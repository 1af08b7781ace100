import type { JsonWebKey } from 'node:crypto'
import { digest } from '../../apps/shared/data/digest.ts'
import { type ExportHead, exportEvidence, type SigningKey, verifyEvidence } from '../../apps/shared/evidence/verify.ts'
import type { Dice } from '../chaos/dice.ts'

// biome-ignore lint/suspicious/noExplicitAny: a chain is read as a stranger reads it
type Entry = Record<string, any>
type Forgery = { what: string; change: (records: Entry[]) => Entry[] }

const linesOf = (file: string): Entry[] =>
  file
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
const textOf = (lines: readonly Entry[]) => Buffer.from(lines.map((line) => `${canonical(line)}\n`).join(''))
/** Keys in JCS order: a change must be refused for its content, not for its spelling. */
const canonical = (value: unknown): string =>
  JSON.stringify(value, (_key, part) =>
    part !== null && typeof part === 'object' && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  )

/** Returns what is wrong with the verifier's verdict on this chain: it refuses the chain, or accepts a changed one. */
export const judgeChain = (
  file: string,
  keys: readonly JsonWebKey[],
  key: SigningKey,
  dice: Dice,
): { faults: string[]; tried: number } => {
  const faults: string[] = []
  const whole = verifyEvidence(Buffer.from(file), keys)
  if ('fault' in whole)
    return { faults: [`its chain does not hold: line ${whole.fault.line}: ${whole.fault.why}`], tried: 0 }
  if (whole.ended === null) faults.push('its chain names no end')
  const lines = linesOf(file)
  const head = lines.at(-1) as ExportHead & Entry
  const records = lines.slice(0, -1)
  let tried = 0
  for (const { what, lines: changed } of tampered(lines, dice)) {
    tried += 1
    if (!('fault' in verifyEvidence(textOf(changed), keys))) faults.push(`its chain holds after this: ${what}`)
  }
  for (const { what, change } of forgeries(records)) {
    tried += 1
    if (!('fault' in verifyEvidence(Buffer.from(sign(change(structuredClone(records)), head, key)), keys)))
      faults.push(`its chain holds, linked and signed anew, after this: ${what}`)
  }
  return { faults, tried }
}

/** Changes by someone without the key: one of each kind at a random place. */
const tampered = (lines: readonly Entry[], dice: Dice): { what: string; lines: Entry[] }[] => {
  const last = lines.length - 1
  const at = Math.floor(dice.between(0, last))
  const other = at + 1 < last ? at + 1 : 0
  const swapped = [...lines]
  ;[swapped[at], swapped[other]] = [lines[other] as Entry, lines[at] as Entry]
  const altered = structuredClone([...lines])
  const field = dice.pick(['statement', 'at', 'kind'])
  if (altered[at]) altered[at][field] = `${altered[at][field]}x`
  return [
    { what: `record ${at + 1} is left out`, lines: lines.filter((_, i) => i !== at) },
    { what: `records ${at + 1} and ${other + 1} change places`, lines: other === at ? lines.slice(1) : swapped },
    { what: `${field} of record ${at + 1} is altered`, lines: altered },
    { what: 'the last record is cut off', lines: lines.filter((_, i) => i !== last - 1) },
    { what: 'the head is cut off', lines: lines.slice(0, -1) },
    { what: `record ${at + 1} stands twice`, lines: [...lines.slice(0, at + 1), ...lines.slice(at)] },
  ]
}

/** The chain after a change by someone with the key: numbered, linked and signed like a true one. */
const sign = (
  records: readonly Entry[],
  { kid: _kid, signature: _signature, ...head }: ExportHead & Entry,
  key: SigningKey,
): string => {
  let prev_hash = records[0]?.prev_hash ?? head.plan_hash
  const linked = records.map((record, i) => {
    const { hash: _, ...rest }: Entry = { ...record, seq: i + 1, prev_hash: i === 0 ? head.plan_hash : prev_hash }
    prev_hash = digest(rest)
    return { ...rest, hash: prev_hash }
  })
  return exportEvidence(linked, { ...head, seq: linked.length, hash: prev_hash } as ExportHead, key)
}

/** Changes that remove the basis on which a gate passed, for gates behind which a node began. */
const forgeries = (records: readonly Entry[]): Forgery[] => {
  const start = records.find(({ kind }) => kind === 'start')
  const found: Forgery[] = []
  const used = records.flatMap(({ subject }) => (subject?.type === 'node' ? ((subject.gates ?? []) as Entry[]) : []))
  const inPlace = (match: (record: Entry) => boolean, alter: (record: Entry) => void) => (all: Entry[]) => {
    for (const record of all) if (match(record)) alter(record)
    return all
  }
  for (const decision of records.filter(({ subject }) => subject?.type === 'gate' && subject.status === 'approved')) {
    const { id, round, digest: decided, kept, patch_id } = decision.subject
    if (!used.some(({ gate_id, digest }) => gate_id === id && digest === decided)) continue
    const name = `gate ${id} in round ${round}`
    const same = ({ subject }: Entry) =>
      subject?.type === 'gate' && subject.id === id && subject.digest === decided && subject.status === 'approved'
    found.push({
      what: `no decision on ${name} and its digest`,
      change: (all) => all.filter((record) => !same(record)),
    })
    if (decision.actor?.kind !== 'user') continue
    found.push({
      what: `nobody was proved before ${id}`,
      change: inPlace(
        ({ subject }) => (subject?.gates ?? []).some(({ gate_id }: Entry) => gate_id === id),
        ({ subject }) => {
          for (const gate of subject.gates) if (gate.gate_id === id) gate.standing_at = null
        },
      ),
    })
    if (kept !== undefined || patch_id !== undefined) continue
    const isVote = ({ kind, subject, seq }: Entry) =>
      kind === 'vote' && subject?.type === 'gate' && subject.id === id && subject.round === round && seq < decision.seq
    const votes = records.filter(
      (record) => isVote(record) && record.subject.decision === 'approve' && record.subject.digest === decided,
    )
    const rule = start?.subject.rules?.find(({ gate_id }: Entry) => gate_id === id)
    const clean =
      records.filter(isVote).length === votes.length &&
      new Set(votes.map(({ subject }) => subject.voter)).size === votes.length
    if (!rule || !clean || votes.length !== rule.quorum) continue
    for (const vote of votes) {
      const it = ({ seq }: Entry) => seq === vote.seq
      const by = `the vote of ${vote.actor?.name} on ${name}`
      found.push(
        { what: `${by} is left out`, change: (all) => all.filter((record) => !it(record)) },
        { what: `${by} is a rejection`, change: inPlace(it, ({ subject }) => (subject.decision = 'reject')) },
        {
          what: `${by} is for something else`,
          change: inPlace(it, ({ subject }) => (subject.digest = `sha256:${'0'.repeat(64)}`)),
        },
        { what: `${by} is of another round`, change: inPlace(it, ({ subject }) => (subject.round += 100)) },
        {
          what: `${by} is by another`,
          change: inPlace(it, ({ actor }) => (actor.id = '00000000-0000-4000-8000-000000000000')),
        },
        {
          what: `${by} comes after the decision`,
          change: (all) => {
            const moved = all.find(it) as Entry
            const rest = all.filter((record) => !it(record))
            const after = rest.findIndex(({ seq }) => seq === decision.seq) + 1
            return [...rest.slice(0, after), moved, ...rest.slice(after)]
          },
        },
        {
          what: `${by} is by the starter`,
          change: inPlace(it, (record) => {
            record.actor.id = start?.subject.starter
            record.subject.voter = start?.subject.starter
          }),
        },
      )
    }
    const isStart = ({ kind }: Entry) => kind === 'start'
    const ofGate = (subject: Entry): Entry => subject.rules.find(({ gate_id }: Entry) => gate_id === id)
    found.push(
      {
        what: `one more vote is asked for at ${name}`,
        change: inPlace(isStart, ({ subject }) => (ofGate(subject).quorum += 1)),
      },
      {
        what: `votes of another group are asked for at ${name}`,
        change: inPlace(isStart, ({ subject }) => (ofGate(subject).groups = [{ group: 'nobody', min: 1 }])),
      },
      {
        what: `no rules for ${name}`,
        change: inPlace(
          isStart,
          ({ subject }) => (subject.rules = subject.rules.filter((rule: Entry) => rule.gate_id !== id)),
        ),
      },
    )
  }
  for (const { subject } of records.filter(({ subject }) => subject?.type === 'patch' && subject.status === 'approved'))
    found.push({
      what: `nobody voted for the patch ${subject.id}`,
      change: (all) =>
        all.filter(
          (record) => !(record.kind === 'vote' && record.subject?.type === 'patch' && record.subject.id === subject.id),
        ),
    })
  return found
}
