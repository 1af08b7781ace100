import type { Gate } from '../api/types.ts'
import { duration, shown } from '../kit/format.ts'
import { tDecide } from '../words/decide.ts'
import { t } from '../words/index.ts'
import type { Places } from './releases.ts'
import { canaryLine, joined, type Line, line, nowLine } from './targets.ts'
import { ruleOf, votesInRound } from './votes.tsx'

const words = tDecide.gate.brief

export const backLine = ({ brief }: Gate): Line => {
  const { possible = false, lasting = [], lasting_count = 0 } = brief?.undo ?? {}
  const names = lasting.map(({ name }) => shown(name))
  const text =
    lasting_count === 0
      ? possible
        ? words.back_all
        : words.back_needless
      : possible
        ? words.back_but(names, lasting_count - names.length)
        : words.back_none
  return line(words.back, [text])
}

const riskLine = ({ brief, context }: Gate): Line => {
  const { level = '', score = 0, factors = [] } = brief?.risk ?? {}
  const forbids = context.policy_results.filter(({ result }) => result === 'forbids')
  const { total = 0, at_least = false } = context.affected ?? {}
  return line(words.risk, [
    words.risk_of(
      t.risk[level] ?? level,
      score,
      factors.map(({ factor, points }) => words.factor(factor, points)),
    ),
    total > 0 && words.dependents(total, at_least),
    ...forbids.map(({ policy_id }) => ({ text: words.forbids(policy_id), bad: true })),
  ])
}

const timeLine = ({ brief, context }: Gate): Line => {
  const { p50_s = 0, p90_s = 0 } = brief?.estimates ?? {}
  const { rehearsal } = context
  return line(words.time, [
    words.takes(duration(p50_s * 1000), duration(p90_s * 1000)),
    rehearsal ? words.rehearsed(rehearsal.ends) : words.not_rehearsed,
  ])
}

/** How many of which types where, and the sizes of the batches. */
export const whereWords = ({ types, regions, batches }: Places): string => {
  const what = types.map(({ type_key, count }) => words.of_type(count, type_key)).join(', ')
  return joined([
    regions.length > 0 ? `${what} ${words.in_regions(regions.map(shown))}` : what,
    batches.length > 1 && words.batches(batches),
  ])
}

const whoLine = (gate: Gate, at: (time: string) => string): Line => {
  const { quorum, groups, four_eyes, escalation = [] } = ruleOf(gate)
  const { brief, deadline_at, eligible, on_timeout, on_reject } = gate
  const next = escalation[gate.escalation.level]
  const then = words.timeout[on_timeout] ?? on_timeout
  return line(words.who, [
    words.votes(
      votesInRound(gate).filter(({ decision }) => decision === 'approve').length,
      quorum,
      groups.map(({ group }) => group),
      eligible.map(({ name }) => shown(name)),
    ),
    four_eyes && brief ? words.not(shown(brief.asked.requester.name)) : false,
    ...(brief?.void_votes ?? []).map(({ name, why }) => words.void_vote(shown(name), words.why_void[why] ?? why)),
    next && gate.escalation.next_at ? words.adds(at(gate.escalation.next_at), next.add_groups) : false,
    deadline_at
      ? words.ends(
          at(deadline_at),
          on_timeout === 'reject' ? `${then}, ${words.effects[on_reject] ?? on_reject}` : then,
        )
      : tDecide.gate.no_deadline,
  ])
}

/** What is bad in the context; otherwise the state of the canary or the targets. The dialog repeats it. */
export const gravest = (gate: Gate, now: number): Line[] => {
  const lines = [canaryLine(gate, now, true), nowLine(gate), riskLine(gate)].filter((each) => each !== undefined)
  const bad = lines
    .filter((each) => each.bad)
    .map((each) => ({ ...each, parts: each.parts.filter((part) => part.bad) }))
  return bad.length > 0 ? bad : lines.slice(0, 1)
}

/** The context of a decision. */
export const contextLines = (gate: Gate, now: number, at: (time: string) => string): Line[] => {
  const { subject, brief, status } = gate
  const waits = status === 'waiting'
  return [
    subject?.v === 1 && brief && brief.types.length > 0 ? line(words.where, [whereWords(brief)]) : undefined,
    canaryLine(gate, now),
    nowLine(gate),
    riskLine(gate),
    timeLine(gate),
    backLine(gate),
    waits ? whoLine(gate, at) : undefined,
  ].filter((each) => each !== undefined)
}
