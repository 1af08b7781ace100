import type { GateSubject } from '../api/types.ts'
import { ChangeList, valueText } from '../values/diff.tsx'
import { tChange } from '../words/change.ts'
import { tDecide } from '../words/decide.ts'
import { t } from '../words/index.ts'
import { isPreview, PreviewView } from './preview.tsx'

const FIRST = 12

/** The subject of a decision on a gate: the released nodes, their changes, the bound outputs. */
export const GateSubjectView = ({ subject, ranks }: { subject: GateSubject; ranks: ReadonlyMap<string, number> }) => {
  const previews = subject.bound_outputs.flatMap(({ pointer, value }) => (isPreview(value) ? [{ pointer, value }] : []))
  const outputs = subject.bound_outputs.filter(({ value }) => !isPreview(value))
  const count = subject.releases_count ?? subject.releases.length
  if (subject.intervention) return <Asked intervention={subject.intervention} />
  return (
    <div className="flex flex-col gap-6">
      {previews.map(({ pointer, value }) => (
        <PreviewView key={pointer} preview={value} />
      ))}
      <section className="flex flex-col gap-1">
        <h3 className="font-semibold">
          {subject.changes.length === 0 ? tDecide.gate.no_changes : tDecide.gate.changes(subject.changes.length)}
        </h3>
        <ChangeList changes={subject.changes} />
      </section>
      <section className="flex flex-col gap-2">
        <h3 className="font-semibold">{tDecide.gate.releases(count)}</h3>
        {count > subject.releases.length ? (
          <p className="text-muted">{tDecide.gate.releases_cut(subject.releases.length, count)}</p>
        ) : null}
        <Releases releases={subject.releases} ranks={ranks} />
      </section>
      {outputs.length > 0 ? (
        <section className="flex flex-col gap-1">
          <h3 className="font-semibold">{tDecide.gate.outputs}</h3>
          <dl className="facts">
            {outputs.map(({ pointer, value }) => (
              <div key={pointer} className="contents">
                <dt className="mono">{pointer}</dt>
                <dd className="mono">{valueText(value)}</dd>
              </div>
            ))}
          </dl>
        </section>
      ) : null}
    </div>
  )
}

/** An intervention that needs a second person: its effect on approval, the requester, and the reason. */
const Asked = ({ intervention }: { intervention: NonNullable<GateSubject['intervention']> }) => {
  const { type, node_id, payload, reason, ticket, author } = intervention
  const words = tChange.intervene.types[type]
  return (
    <section className="flex flex-col gap-2">
      <h3 className="font-semibold">
        {words?.word ?? type.replaceAll('_', ' ')}
        {node_id === null ? null : <code className="ml-2 font-normal">{node_id}</code>}
      </h3>
      {words ? <p>{words.effect}</p> : null}
      <dl className="facts">
        <dt>{tDecide.command.reason}</dt>
        <dd>“{reason}”</dd>
        <dt>{tChange.intervene.by}</dt>
        <dd>{author.name}</dd>
        {ticket === null ? null : (
          <>
            <dt>{tChange.intervene.ticket}</dt>
            <dd>{ticket}</dd>
          </>
        )}
        {Object.entries(payload).map(([member, value]) => (
          <div key={member} className="contents">
            <dt>{tChange.intervene.fields[member as keyof typeof tChange.intervene.fields]?.label ?? member}</dt>
            <dd>
              <pre className="code">{valueText(value)}</pre>
            </dd>
          </div>
        ))}
      </dl>
    </section>
  )
}

type Release = GateSubject['releases'][number]

/** Nodes by the resource that they act on, in the order of the plan where it is known. */
const Releases = ({ releases, ranks }: { releases: Release[]; ranks: ReadonlyMap<string, number> }) => {
  const groups = byTarget(releases, ranks)
  const shown = groups.length > FIRST + 2 ? groups.slice(0, FIRST) : groups
  return (
    <>
      <ReleaseGroups groups={shown} />
      {groups.length > shown.length ? (
        <details>
          <summary className="py-1 text-accent">{t.show_all(groups.length)}</summary>
          <ReleaseGroups groups={groups.slice(shown.length)} />
        </details>
      ) : null}
    </>
  )
}

const ReleaseGroups = ({ groups }: { groups: Release[][] }) => (
  <ul className="releases">
    {groups.map((group) => {
      const [first] = group
      if (first === undefined) return null
      return (
        <li key={first.node_id}>
          <details>
            <summary>
              {first.target_id === null ? (
                <span className="font-medium">{first.name}</span>
              ) : (
                <>
                  <span className="font-medium">{first.target_id}</span>
                  <span className="text-muted">: {tDecide.gate.steps(group.map((release) => stepOf(release)))}</span>
                </>
              )}
            </summary>
            {group.map((release) => (
              <ReleaseFacts key={release.node_id} release={release} />
            ))}
          </details>
        </li>
      )
    })}
  </ul>
)

const ReleaseFacts = ({ release }: { release: Release }) => (
  <dl className="facts border-t border-line py-2 pl-4">
    <dt>{tDecide.gate.node}</dt>
    <dd>
      {release.name} <code className="text-muted">{release.node_id}</code>
    </dd>
    {release.executor ? (
      <>
        <dt>{tDecide.gate.executor}</dt>
        <dd className="mono">{release.executor}</dd>
      </>
    ) : null}
    <dt>{tDecide.gate.on_failure}</dt>
    <dd>{tDecide.gate.failure[release.on_failure] ?? release.on_failure}</dd>
    {release.inputs === null || release.inputs === undefined ? null : (
      <>
        <dt>{tDecide.gate.inputs}</dt>
        <dd>
          <pre className="code">{valueText(release.inputs)}</pre>
        </dd>
      </>
    )}
  </dl>
)

/** The node's name without its target's, which is before it. */
const stepOf = ({ name, target_id }: Release): string =>
  target_id === null ? name : name.replace(target_id, '').trim() || name

function byTarget(releases: Release[], ranks: ReadonlyMap<string, number>): Release[][] {
  const groups = new Map<string, Release[]>()
  const ranked = [...releases].sort((a, b) => (ranks.get(a.node_id) ?? 0) - (ranks.get(b.node_id) ?? 0))
  for (const release of ranked) {
    const key = release.target_id ?? `node ${release.node_id}`
    groups.set(key, [...(groups.get(key) ?? []), release])
  }
  return [...groups.values()]
}
