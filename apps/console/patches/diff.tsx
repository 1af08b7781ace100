import type { Patch, PatchChange } from '../api/types.ts'
import { ChangeMark, FieldDiffs, valueText } from '../values/diff.tsx'
import { tChange } from '../words/change.ts'
import { t } from '../words/index.ts'
import { tOperation } from '../words/operation.ts'

type Names = (node_id: string) => string

type PatchDiffProps = { diff: Patch['diff_graph']; changes: readonly unknown[]; nameOf: Names }

/** The graph before and after: added, removed and changed parts, each with its label. */
export const PatchDiff = ({ diff, changes, nameOf }: PatchDiffProps) => {
  const specs = new Map(
    (changes as PatchChange[]).flatMap((change) =>
      change.op === 'add_node' ? [[change.node.node_id, change.node]] : [],
    ),
  )
  const gates = new Map(
    (changes as PatchChange[]).flatMap((change) =>
      change.op === 'add_gate' ? [[change.gate.gate_id, change.gate]] : [],
    ),
  )
  const { added, removed, changed, added_gates, removed_gates, max_parallel, risk = null } = diff
  const lists = [added, removed, changed, added_gates, removed_gates]
  if (max_parallel === null && risk === null && lists.every(({ length }) => length === 0))
    return <p className="text-muted">{tChange.patch.nothing}</p>
  return (
    <ul className="flex flex-col">
      {added.map((id) => {
        const spec = specs.get(id)
        return (
          <Row key={`+${id}`} change="create" kind={tChange.patch.added_step} name={spec?.name ?? id} id={id}>
            {spec ? (
              <details>
                <summary className="text-table text-muted">{tChange.patch.details}</summary>
                <pre className="code mt-2">{valueText(spec)}</pre>
              </details>
            ) : null}
          </Row>
        )
      })}
      {changed.map(({ node_id, fields }) => (
        <Row key={`~${node_id}`} change="update" kind={tChange.patch.added_step} name={nameOf(node_id)} id={node_id}>
          <FieldDiffs fields={fields} />
        </Row>
      ))}
      {removed.map((id) => (
        <Row key={`-${id}`} change="delete" kind={tChange.patch.added_step} name={nameOf(id)} id={id} />
      ))}
      {added_gates.map((id) => (
        <Row key={`+g${id}`} change="create" kind={tChange.patch.gate} name={gates.get(id)?.question ?? id} id={id}>
          <p className="text-table text-muted wrap-anywhere">
            {tOperation.graph.guards} {t.and((gates.get(id)?.guards ?? []).map(nameOf))}
          </p>
        </Row>
      ))}
      {removed_gates.map((id) => (
        <Row key={`-g${id}`} change="delete" kind={tChange.patch.gate} name={id} />
      ))}
      {max_parallel ? (
        <Row change="update" kind={tChange.patch.limit} name="">
          <FieldDiffs fields={[{ path: 'max_parallel', ...max_parallel }]} />
        </Row>
      ) : null}
      {risk ? (
        <Row change="update" kind={tChange.patch.risk} name="">
          <FieldDiffs fields={[{ path: 'risk', ...risk }]} />
        </Row>
      ) : null}
    </ul>
  )
}

type RowProps = { change: string; kind: string; name: string; id?: string; children?: React.ReactNode }

const Row = ({ change, kind, name, id, children }: RowProps) => (
  <li className="flex flex-col gap-2 border-b border-line py-3 first:pt-0 last:border-0 last:pb-0">
    <div className="flex flex-wrap items-center gap-x-2 gap-y-1">
      <ChangeMark change={change} />
      <span className="text-muted">{kind}</span>
      <span className="font-medium wrap-anywhere">{name}</span>
      {id !== undefined && id !== name ? <code className="text-muted wrap-anywhere">{id}</code> : null}
    </div>
    {children}
  </li>
)
