import type { Preview, PreviewField } from '../../shared/contracts/client/preview.ts'
import { shown } from '../kit/format.ts'
import { ChangeMark, FieldDiffs } from '../values/diff.tsx'
import { tDecide } from '../words/decide.ts'
import { tPreview as words } from '../words/operations/plan.ts'

/** A tool's changes as an agent previewed them before the gate: each change with its fields, the heaviest first. */
export const PreviewView = ({ preview }: { preview: Preview }) => (
  <section className="flex flex-col gap-2">
    <h3 className="font-semibold">
      {preview.no_change ? tDecide.gate.preview_none : words.changes(preview.changes_count)}
    </h3>
    <p>{words[preview.binding === 'exact' && !preview.plan ? 'commit' : preview.binding]}</p>
    {preview.targets ? <p>{words.only(preview.targets)}</p> : null}
    <ul className="releases">
      {preview.changes.map(({ id, action, note, fields, fields_count }) => (
        <li key={id}>
          <details open={action === 'delete' || action === 'replace'}>
            <summary>
              <ChangeMark change={action} /> <code>{shown(id)}</code> <bdi>{shown(note ?? '')}</bdi>
            </summary>
            <FieldDiffs fields={fields.map(changeOf)} />
            {fields_count === undefined ? null : (
              <p className="text-muted">{words.fields(fields.length, fields_count)}</p>
            )}
          </details>
        </li>
      ))}
    </ul>
    {preview.changes.length < preview.changes_count ? (
      <p className="text-muted">{words.cut(preview.changes.length, preview.changes_count)}</p>
    ) : null}
    {preview.unforeseen?.length ? (
      <details>
        <summary>{words.unforeseen(preview.unforeseen.length)}</summary>
        <ul className="names">
          {preview.unforeseen.map((task) => (
            <li key={task}>{shown(task)}</li>
          ))}
        </ul>
      </details>
    ) : null}
    {preview.base && preview.plan ? (
      <p className="text-muted">
        {words.base(preview.base.serial)} <code>{preview.plan.content_sha256.slice(0, 12)}</code>
      </p>
    ) : null}
    <CommitOf preview={preview} />
  </section>
)

/** The commit that is pushed, or the one that the files come from. */
const CommitOf = ({ preview: { source, commit = source?.commit } }: { preview: Preview }) =>
  commit === undefined ? null : (
    <p className="text-muted">
      {words.commit_id} <code>{commit.slice(0, 12)}</code> {source ? shown(`(${source.repo}, ${source.ref})`) : null}
    </p>
  )

const changeOf = ({ path, before, after, unknown, sensitive, noise }: PreviewField) => ({
  path,
  ...(noise && { noise }),
  before: sensitive ? words.sensitive : (before ?? null),
  after: sensitive ? words.sensitive_changes : unknown ? words.unknown : (after ?? null),
})
