import type { Preview } from '../../shared/contracts/client/preview.ts'
import type { Tone } from '../../shared/contracts/client/status.ts'
import type { FieldChange, GateSubject } from '../api/types.ts'
import { shown } from '../kit/format.ts'
import { t } from '../words/index.ts'

const SIGNS: Record<string, { sign: string; tone: Tone }> = {
  create: { sign: '+', tone: 'ok' },
  update: { sign: '~', tone: 'run' },
  replace: { sign: '±', tone: 'wait' },
  delete: { sign: '−', tone: 'bad' },
  no_change: { sign: '=', tone: 'idle' },
}

/** Sign and label for a kind of change. */
export const ChangeMark = ({ change }: { change: string }) => {
  const { sign, tone } = SIGNS[change] ?? { sign: '~', tone: 'run' as const }
  return (
    <span className={`badge tone-${tone}`}>
      <span aria-hidden="true" className="mono">
        {sign}
      </span>
      {t.change[change] ?? change}
    </span>
  )
}

/** A readable value: plain text, or JSON for the rest; secrets appear as their references. */
export const valueText = (value: unknown): string =>
  value === undefined || value === null
    ? t.absent
    : shown(typeof value === 'string' ? value : JSON.stringify(value, null, 2))

/** Fields before and after; equal fields are left out, noise is folded. */
export const FieldDiffs = ({ fields }: { fields: FieldChange[] }) => {
  const said = fields.filter((field) => !field.noise)
  const noise = fields.filter((field) => field.noise)
  return (
    <>
      {said.length > 0 ? <FieldTable fields={said} /> : null}
      {noise.length > 0 ? (
        <details>
          <summary className="text-table text-muted">{t.show_all(fields.length)}</summary>
          <FieldTable fields={noise} />
        </details>
      ) : null}
    </>
  )
}

const FieldTable = ({ fields }: { fields: FieldChange[] }) => (
  <dl className="diff">
    {fields.map(({ path, before, after }) => (
      <div key={path}>
        <dt className="mono">{shown(path.replace(/^\//, '').replaceAll('/', '.'))}</dt>
        <dd>
          {isList(before) && isList(after) ? (
            <ListDiff before={before} after={after} />
          ) : (
            <>
              <del className={before === null || before === undefined ? 'none' : ''}>{valueText(before)}</del>
              <span aria-hidden="true" className="text-muted">
                →
              </span>
              <ins className={after === null || after === undefined ? 'none' : ''}>{valueText(after)}</ins>
            </>
          )}
        </dd>
      </div>
    ))}
  </dl>
)

type Scalar = string | number | boolean
const isList = (value: unknown): value is Scalar[] =>
  Array.isArray(value) && value.every((item) => item !== null && typeof item !== 'object')

/** A list item by item: removed, added, and the number of kept items. A mere change of order is shown whole. */
const ListDiff = ({ before, after }: { before: Scalar[]; after: Scalar[] }) => {
  const gone = before.filter((item) => !after.includes(item))
  const come = after.filter((item) => !before.includes(item))
  if (gone.length + come.length === 0)
    return (
      <>
        <del>{shown(before.join(', '))}</del>
        <ins>{shown(after.join(', '))}</ins>
      </>
    )
  return (
    <>
      {gone.map((item) => (
        <del key={String(item)}>{shown(String(item))}</del>
      ))}
      {come.map((item) => (
        <ins key={String(item)}>{shown(String(item))}</ins>
      ))}
      {after.length > come.length ? (
        <span className="text-muted">{t.unchanged(after.length - come.length)}</span>
      ) : null}
    </>
  )
}

/** Whether a bound output is a tool's preview of its changes. */
export const isPreview = (value: unknown): value is Preview =>
  (value as Partial<Preview> | null)?.format === 'signalbox/preview@1'

type Change = GateSubject['changes'][number]
const ALIKE = 3

type ChangeListProps = { changes: Change[]; names?: ReadonlyMap<string, string> }

/** Changes by resource with sign, label and fields. Resources with the same change appear once, with all names. */
export const ChangeList = ({ changes, names = new Map() }: ChangeListProps) => (
  <ul className="flex flex-col">
    {alike(changes).map((group) => {
      const [first] = group
      if (first === undefined) return null
      const labels = group.map(({ resource_id }) => names.get(resource_id) ?? resource_id)
      return (
        <li key={first.resource_id} className="flex flex-col gap-2 border-b border-line py-3 last:border-0">
          <div className="flex flex-wrap items-center gap-2">
            <ChangeMark change={first.change} />
            <span className="font-medium wrap-anywhere">
              {group.length === 1 ? labels[0] : t.resources_alike(group.length)}
            </span>
          </div>
          <FieldDiffs fields={first.fields} />
          {group.length > 1 ? (
            <ul className="names">
              {labels.map((label) => (
                <li key={label}>{label}</li>
              ))}
            </ul>
          ) : null}
        </li>
      )
    })}
  </ul>
)

/** Groups of resources with the same change of the same fields, by first appearance; small groups are split. */
function alike(changes: Change[]): Change[][] {
  const groups = new Map<string, Change[]>()
  for (const change of changes) {
    const key = JSON.stringify([change.change, change.fields])
    groups.set(key, [...(groups.get(key) ?? []), change])
  }
  return [...groups.values()].flatMap((group) => (group.length < ALIKE ? group.map((change) => [change]) : [group]))
}
