import type { Resource } from '../api/types.ts'
import { Empty } from '../ui/page.tsx'
import { valueText } from '../values/diff.tsx'
import { tCatalog } from '../words/catalog.ts'

/** Desired and observed state side by side; drifted fields come first. */
export const States = ({ resource }: { resource: Resource }) => {
  const { desired_state, observed_state } = resource
  const drifted = new Set(resource.drift.paths.map((path) => path.replace(/^\/(desired_state\/)?/, '').split('/')[0]))
  const fields = [...new Set([...Object.keys(desired_state), ...Object.keys(observed_state)])].sort(
    (a, b) => Number(drifted.has(b)) - Number(drifted.has(a)) || a.localeCompare(b),
  )
  if (fields.length === 0) return <Empty>{tCatalog.resource.no_state}</Empty>
  return (
    <table className="table">
      <caption className="sr-only">{tCatalog.resource.states}</caption>
      <thead>
        <tr>
          <th scope="col">{tCatalog.resource.field}</th>
          <th scope="col">{tCatalog.resource.desired}</th>
          <th scope="col">{tCatalog.resource.observed}</th>
        </tr>
      </thead>
      <tbody>
        {fields.map((field) => (
          <tr key={field}>
            <th scope="row" className="mono font-normal text-text">
              {field}
              {drifted.has(field) ? <span className="badge tone-wait ml-2">{tCatalog.resource.differs}</span> : null}
            </th>
            <td className="mono wrap-anywhere">{field in desired_state ? valueText(desired_state[field]) : ''}</td>
            <td className="mono wrap-anywhere">{field in observed_state ? valueText(observed_state[field]) : ''}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
