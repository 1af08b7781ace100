import type { GateSubject } from '../api/types.ts'
import { t } from '../i18n/index.ts'
import { ChangeList, valueText } from './diff-view.tsx'

const FIRST = 12

/** What a decision on a gate covers: the nodes that are released, the changes they make, the outputs they use. */
export const GateSubjectView = ({ subject }: { subject: GateSubject }) => {
  const count = subject.releases_count ?? subject.releases.length
  return (
    <div className="flex flex-col gap-6">
      <section className="flex flex-col gap-1">
        <h3 className="font-semibold">
          {subject.changes.length === 0 ? t.gate.no_changes : t.gate.changes(subject.changes.length)}
        </h3>
        <ChangeList changes={subject.changes} />
      </section>
      <section className="flex flex-col gap-2">
        <h3 className="font-semibold">{t.gate.releases(count)}</h3>
        {count > subject.releases.length ? (
          <p className="text-muted">{t.gate.releases_cut(subject.releases.length, count)}</p>
        ) : null}
        <Releases releases={subject.releases} />
      </section>
      {subject.bound_outputs.length > 0 ? (
        <section className="flex flex-col gap-1">
          <h3 className="font-semibold">{t.gate.outputs}</h3>
          <dl className="facts">
            {subject.bound_outputs.map(({ pointer, value }) => (
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

const Releases = ({ releases }: { releases: GateSubject['releases'] }) => (
  <>
    <ul className="releases">
      {releases.slice(0, FIRST).map((release) => (
        <Release key={release.node_id} release={release} />
      ))}
    </ul>
    {releases.length > FIRST ? (
      <details>
        <summary className="py-1 text-accent">{t.show_all(releases.length)}</summary>
        <ul className="releases">
          {releases.slice(FIRST).map((release) => (
            <Release key={release.node_id} release={release} />
          ))}
        </ul>
      </details>
    ) : null}
  </>
)

const Release = ({ release }: { release: GateSubject['releases'][number] }) => (
  <li>
    <details>
      <summary>
        <span className="font-medium">{release.name}</span>
        {release.target_id && !release.name.includes(release.target_id) ? (
          <span className="text-muted"> {release.target_id}</span>
        ) : null}
      </summary>
      <dl className="facts py-2 pl-4">
        <dt>{t.gate.node}</dt>
        <dd className="mono">{release.node_id}</dd>
        {release.target_id ? (
          <>
            <dt>{t.gate.target}</dt>
            <dd className="mono">{release.target_id}</dd>
          </>
        ) : null}
        {release.executor ? (
          <>
            <dt>{t.gate.executor}</dt>
            <dd className="mono">{release.executor}</dd>
          </>
        ) : null}
        <dt>{t.gate.on_failure}</dt>
        <dd>{t.gate.failure[release.on_failure] ?? release.on_failure}</dd>
        <dt>{t.gate.inputs}</dt>
        <dd>
          <pre className="code">{valueText(release.inputs)}</pre>
        </dd>
      </dl>
    </details>
  </li>
)
