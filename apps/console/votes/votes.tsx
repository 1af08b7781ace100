import { shortDigest } from '../../shared/contracts/client/digest.ts'
import type { GateRow, GateRule, Vote } from '../api/types.ts'
import { shown } from '../kit/format.ts'
import { Person } from '../values/person.tsx'
import { ShapeIcon } from '../values/status.tsx'
import { TimeText } from '../values/time.tsx'
import { tDecide } from '../words/decide.ts'
import { quoted } from '../words/frame/language.ts'

type Decided = Pick<GateRow, 'policy' | 'votes' | 'round' | 'missing' | 'eligible'>

/** The part of the gate's rule that is shown to people. */
export const ruleOf = ({ policy }: Pick<GateRow, 'policy'>): GateRule => {
  const rule = policy as Partial<GateRule>
  return {
    quorum: rule.quorum ?? 1,
    groups: rule.groups ?? [],
    four_eyes: rule.four_eyes ?? true,
    comment_on_approve: rule.comment_on_approve ?? false,
    escalation: rule.escalation ?? [],
  }
}

export const ruleWords = (gate: Pick<GateRow, 'policy'>): string => {
  const { quorum, groups, four_eyes } = ruleOf(gate)
  return tDecide.gate.rule(
    quorum,
    groups.map(({ group }) => group),
    four_eyes,
  )
}

export const votesInRound = ({ votes, round }: Pick<GateRow, 'votes' | 'round'>): Vote[] =>
  votes.filter((vote) => vote.round === round)

/** The rule in words, missing voters, and every vote with person, time, comment and digest; earlier rounds folded. */
export const Votes = ({ gate, waiting }: { gate: Decided; waiting: boolean }) => {
  const current = votesInRound(gate)
  const earlier = gate.votes.filter((vote) => vote.round !== gate.round)
  const rounds = [...new Set(earlier.map((vote) => vote.round))].sort((a, b) => b - a)
  return (
    <div className="flex flex-col gap-3">
      <p>{ruleWords(gate)}.</p>
      {current.length === 0 ? <p className="text-muted">{tDecide.gate.no_votes}</p> : <VoteList votes={current} />}
      {waiting && gate.missing.length > 0 ? (
        <p>
          {tDecide.gate.missing(
            gate.missing.map(({ group, count }) =>
              group === null ? String(count) : tDecide.gate.missing_part(count, group),
            ),
          )}
        </p>
      ) : null}
      {waiting ? (
        <p className="text-muted">
          {gate.eligible.length > 0
            ? tDecide.gate.eligible(gate.eligible.map(({ name }) => name))
            : tDecide.gate.nobody_eligible}
        </p>
      ) : null}
      {rounds.length > 0 ? (
        <details>
          <summary>{tDecide.gate.earlier_rounds}</summary>
          {rounds.map((round) => (
            <div key={round} className="mt-2 flex flex-col gap-1">
              <h3 className="font-medium">{tDecide.gate.round(round)}</h3>
              <VoteList votes={earlier.filter((vote) => vote.round === round)} />
            </div>
          ))}
        </details>
      ) : null}
    </div>
  )
}

/** Every vote on a gate or a patch, with person, time, digest and comment. */
export const VoteList = ({ votes }: { votes: Pick<Vote, 'actor' | 'decision' | 'comment' | 'digest' | 'at'>[] }) => (
  <ul className="flex flex-col gap-2">
    {votes.map((vote) => (
      <li key={`${vote.actor.id} ${vote.at}`} className="flex gap-2">
        <ShapeIcon
          shape={vote.decision === 'approve' ? 'check' : 'octagon'}
          tone={vote.decision === 'approve' ? 'ok' : 'bad'}
          beside
        />
        <div className="min-w-0">
          <p>
            <strong className="font-medium">
              <Person who={vote.actor} />
            </strong>{' '}
            {tDecide.gate.vote[vote.decision] ?? vote.decision}, <TimeText at={vote.at} form="both" />{' '}
            {vote.digest ? (
              <span className="text-muted">{tDecide.gate.on_digest(shortDigest(vote.digest))}</span>
            ) : null}
          </p>
          {vote.comment ? <p className="wrap-anywhere text-muted">{quoted(shown(vote.comment))}</p> : null}
        </div>
      </li>
    ))}
  </ul>
)
