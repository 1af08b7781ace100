import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { usePreview } from '../api/preview.ts'
import type { Plan } from '../api/types.ts'
import { actionOf, mayPress, WhyNot } from '../command/allowed.tsx'
import { Button } from '../forms/button.tsx'
import { SelectField } from '../forms/select.tsx'
import { duration } from '../kit/format.ts'
import { planGraphQuery } from '../queries/changes.ts'
import { Refused } from '../ui/failure.tsx'
import { ShapeIcon } from '../values/status.tsx'
import { tPlan } from '../words/plan.ts'

type Rehearsal = NonNullable<Plan['rehearsal']>

const words = tPlan.plan.rehearsal
const after = (seconds: number): string => words.seconds(duration(seconds * 1000))
const nodeName = (names: ReadonlyMap<string, string>, id: string): string => names.get(id) ?? id

/** The plan on a virtual clock: its end, its schedule, its gates; and a button to try again. */
export const PlanRehearsal = ({ plan, done }: { plan: Plan; done: (plan_id: string) => void }) => {
  const graph = useQuery(planGraphQuery(plan.plan_id)).data
  const names = new Map(graph?.nodes.map(({ node_id, name }) => [node_id, name]))
  return (
    <div className="flex flex-col gap-6">
      {plan.rehearsal === null ? (
        <p className="max-w-text">{words.none}</p>
      ) : (
        <Result rehearsal={plan.rehearsal} names={names} />
      )}
      <Ask plan={plan} nodes={graph?.nodes ?? []} done={done} />
    </div>
  )
}

type AskProps = { plan: Plan; nodes: readonly { node_id: string; name: string }[]; done: (plan_id: string) => void }

const Ask = ({ plan, nodes, done }: AskProps) => {
  const { busy, problem, send } = usePreview(plan.intent_id, done)
  const [delay, setDelay] = useState('0')
  const [failing, setFailing] = useState('')
  const action = actionOf(plan, 'preview')
  const press = () =>
    send({
      rehearse: {
        approval_delay_s: delay === 'never' ? null : Number(delay),
        ...(failing === '' ? {} : { failures: [{ node_id: failing, attempt: 1, class: 'refused' }] }),
      },
    })
  return (
    <div className="flex flex-col gap-3">
      <div className="flex flex-wrap items-end gap-3">
        <SelectField label={words.approval} choices={Object.entries(words.delays)} value={delay} change={setDelay} />
        <SelectField
          label={words.fail}
          className="max-w-full"
          choices={[['', words.fail_none], ...nodes.map(({ node_id, name }) => [node_id, name] as const)]}
          value={failing}
          change={setFailing}
        />
        <Button aria-disabled={busy || !mayPress(action)} onClick={() => mayPress(action) && press()}>
          {busy ? words.running : plan.rehearsal === null ? words.run : words.again}
        </Button>
        <WhyNot actions={[action]} />
      </div>
      <Refused problem={problem} />
    </div>
  )
}

const GOOD = new Set(['succeeded', 'succeeded_with_exceptions'])
const STANDS = new Set(['blocked', 'paused'])

const Result = ({ rehearsal, names }: { rehearsal: Rehearsal; names: ReadonlyMap<string, string> }) => {
  const { ends, duration_s, approval_delay_s, failures, gates, lanes, lanes_count, compensations, warnings } = rehearsal
  const how = words.ended[ends] ?? ends
  const good = GOOD.has(ends)
  const stands = STANDS.has(ends)
  const delay =
    approval_delay_s === null
      ? (words.delays.never ?? '')
      : (words.delays[String(approval_delay_s)] ?? after(approval_delay_s))
  const failed = failures.map(({ node_id, attempt, class: why }) =>
    words.failure(nodeName(names, node_id), attempt, why),
  )
  return (
    <>
      <div className="flex flex-col gap-1" role="status">
        <p className="flex gap-2 font-medium">
          <ShapeIcon
            shape={good ? 'check' : stands ? 'diamond' : 'octagon'}
            tone={good ? 'ok' : stands ? 'wait' : 'bad'}
            beside
          />
          {(stands ? words.stands : words.ends)(how, duration(duration_s * 1000))}
        </p>
        <p className="text-muted">{words.assumed(delay, failed)}</p>
      </div>
      {warnings.length > 0 ? (
        <section className="flex flex-col gap-1">
          <h2 className="font-semibold">{words.warnings}</h2>
          <ul>
            {warnings.map(({ code, message }) => (
              <li key={code + message} lang="en">
                {message}
              </li>
            ))}
          </ul>
        </section>
      ) : null}
      {gates.some(({ at }) => at !== null) ? (
        <section className="flex flex-col gap-1">
          <h2 className="font-semibold">{words.gates}</h2>
          <ul>
            {gates.flatMap(({ gate_id, at, decided_at }) =>
              at === null
                ? []
                : [
                    <li key={gate_id}>
                      {words.gate_at(gate_id, after(at), decided_at === null ? null : after(decided_at))}
                    </li>,
                  ],
            )}
          </ul>
        </section>
      ) : null}
      {compensations.length > 0 ? <p>{words.undone(compensations.map((id) => nodeName(names, id)))}</p> : null}
      {lanes.length > 0 ? (
        <section className="flex flex-col gap-2">
          <h2 className="font-semibold">{words.lanes}</h2>
          {lanes_count > lanes.length ? (
            <p className="text-table text-muted">{words.lanes_cut(lanes.length, lanes_count)}</p>
          ) : null}
          <Lanes lanes={lanes} total_s={duration_s} names={names} />
        </section>
      ) : null}
    </>
  )
}

const TICKS = 4

type LanesProps = { lanes: Rehearsal['lanes']; total_s: number; names: ReadonlyMap<string, string> }

/** One row per node with a bar per attempt; each bar's text is its accessible name. */
const Lanes = ({ lanes, total_s, names }: LanesProps) => {
  const rows = new Map<string, Rehearsal['lanes']>()
  for (const lane of lanes) rows.set(lane.node_id, [...(rows.get(lane.node_id) ?? []), lane])
  const span = Math.max(total_s, 0.001)
  const share = (seconds: number) => (seconds / span) * 100
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard
    <section className="max-h-96 overflow-y-auto" tabIndex={0} aria-label={words.lanes}>
      <div className="gantt">
        <div className="gantt-corner" />
        <div className="gantt-axis" aria-hidden="true">
          {Array.from({ length: TICKS }, (_, tick) => (
            <span key={share(tick)} style={{ left: `${(tick / TICKS) * 100}%` }}>
              {duration(((span * tick) / TICKS) * 1000)}
            </span>
          ))}
        </div>
        {[...rows].map(([node_id, runs]) => (
          <div key={node_id} className="gantt-row">
            <div className="gantt-name" title={nodeName(names, node_id)}>
              {nodeName(names, node_id)}
            </div>
            <div className="gantt-track">
              {runs.map(({ from_s, to_s, attempt, undo, failure }) => {
                const [from, to] = [after(from_s), after(to_s)]
                const label = words.bar(nodeName(names, node_id), words.attempt(attempt), from, to, failure)
                const tone = failure !== null ? 'bad' : undo ? 'hold' : attempt === 0 ? 'idle' : 'run'
                return (
                  <div
                    key={`${from_s} ${attempt} ${undo}`}
                    role="img"
                    aria-label={label}
                    title={label}
                    className={`segment tone-${tone}`}
                    style={{ left: `${share(from_s)}%`, width: `${share(to_s - from_s)}%` }}
                  />
                )
              })}
            </div>
          </div>
        ))}
      </div>
    </section>
  )
}
