import { Suspense } from 'react'
import { isWatch } from '../../shared/contracts/watch.ts'
import type { GateSubject } from '../api/types.ts'
import { lazyPart } from '../ui/lazy.ts'
import { Loading } from '../ui/page.tsx'
import { ChangeList, isPreview, valueText } from '../values/diff.tsx'
import { inOrder, stepOf } from '../votes/releases.ts'
import { tDecide } from '../words/decide.ts'
import { t } from '../words/index.ts'

const FIRST = 12
/** Parts that few gates have load separately from the first screen. */
const Asked = lazyPart(() => import('./asked.tsx').then((part) => ({ default: part.Asked })))
const PreviewView = lazyPart(() => import('./preview.tsx').then((part) => ({ default: part.PreviewView })))
const WatchView = lazyPart(() => import('./watch.tsx').then((part) => ({ default: part.WatchView })))

type Named = { subject: GateSubject; names: Readonly<Record<string, string>>; order: readonly string[] }

/** The whole subject of a decision, in folds: previews of tools, the changes, the released nodes, the bound outputs. */
export const GateSubjectView = ({ subject, names: known, order }: Named) => {
  const bound = subject.changes.flatMap(({ resource_id, name }) => (name === undefined ? [] : [[resource_id, name]]))
  const names: Named['names'] = { ...known, ...Object.fromEntries(bound) }
  const previews = subject.bound_outputs.flatMap(({ pointer, value }) => (isPreview(value) ? [{ pointer, value }] : []))
  const watches = subject.bound_outputs.flatMap(({ pointer, value }) => (isWatch(value) ? [{ pointer, value }] : []))
  const outputs = subject.bound_outputs.filter(({ value }) => !isPreview(value) && !isWatch(value))
  const count = subject.releases_count ?? subject.releases.length
  if (subject.intervention)
    return (
      <div className="p-4">
        <Suspense fallback={<Loading rows={3} />}>
          <Asked intervention={subject.intervention} />
        </Suspense>
      </div>
    )
  return (
    <>
      {previews.map(({ pointer, value }) => (
        <div key={pointer} className="border-b border-line p-4 last:border-0">
          <Suspense fallback={<Loading rows={3} />}>
            <PreviewView preview={value} />
          </Suspense>
        </div>
      ))}
      {watches.map(({ pointer, value }) => (
        <Suspense key={pointer} fallback={<Loading rows={3} />}>
          <WatchView node_id={pointer.split('/')[1] ?? ''} watch={value} />
        </Suspense>
      ))}
      {subject.changes.length > 0 ? (
        <Fold title={tDecide.gate.brief.changes(subject.changes.length)}>
          <ChangeList changes={subject.changes} names={new Map(Object.entries(names))} />
        </Fold>
      ) : null}
      <Fold title={tDecide.gate.releases(count)}>
        {count > subject.releases.length ? (
          <p className="text-muted">{tDecide.gate.releases_cut(subject.releases.length, count)}</p>
        ) : null}
        <Releases releases={inOrder(subject, order)} names={names} />
      </Fold>
      {outputs.length > 0 ? (
        <Fold title={tDecide.gate.outputs}>
          <dl className="facts">
            {outputs.map(({ pointer, value }) => (
              <div key={pointer} className="contents">
                <dt className="mono">{pointer}</dt>
                <dd className="mono">{valueText(value)}</dd>
              </div>
            ))}
          </dl>
        </Fold>
      ) : null}
    </>
  )
}

/** A part of the page that stays folded until someone opens it. */
export const Fold = ({ title, children }: { title: string; children: React.ReactNode }) => (
  <details className="fold">
    <summary>{title}</summary>
    <div className="flex flex-col gap-3 px-4 pb-4">{children}</div>
  </details>
)

type Release = GateSubject['releases'][number]

/** Nodes grouped by the resource that they act on. */
const Releases = ({ releases, names }: { releases: Release[]; names: Named['names'] }) => {
  const groups = byTarget(releases)
  const shown = groups.length > FIRST + 2 ? groups.slice(0, FIRST) : groups
  return (
    <>
      <ReleaseGroups groups={shown} names={names} />
      {groups.length > shown.length ? (
        <details>
          <summary className="py-1 text-accent">{t.show_all(groups.length)}</summary>
          <ReleaseGroups groups={groups.slice(shown.length)} names={names} />
        </details>
      ) : null}
    </>
  )
}

const ReleaseGroups = ({ groups, names }: { groups: Release[][]; names: Named['names'] }) => (
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
                  <span className="font-medium">{names[first.target_id] ?? first.target_id}</span>
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

function byTarget(releases: Release[]): Release[][] {
  return [...Map.groupBy(releases, ({ target_id, node_id }) => target_id ?? `node ${node_id}`).values()]
}
