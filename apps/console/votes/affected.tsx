import type { Plan } from '../api/types.ts'
import { ResourceLink } from '../values/links.tsx'
import { Health } from '../values/status.tsx'
import { tPlan } from '../words/plan.ts'

type Shown = NonNullable<Plan['impact']['affected']>

/** The resources that depend on the targets, transitively: one row for each type and health, largest first. */
export const AffectedTable = ({ affected: { total, at_least, unhealthy, groups } }: { affected: Shown }) => (
  <div className="flex flex-col gap-2">
    <p>{tPlan.plan.affected(total, at_least, unhealthy)}</p>
    {groups.length > 0 ? (
      <table className="table">
        <thead>
          <tr>
            <th scope="col">{tPlan.plan.affected_columns.type}</th>
            <th scope="col">{tPlan.plan.affected_columns.health}</th>
            <th scope="col" className="number">
              {tPlan.plan.affected_columns.count}
            </th>
            <th scope="col">{tPlan.plan.affected_columns.nearest}</th>
          </tr>
        </thead>
        <tbody>
          {groups.map(({ type_key, health_status, count, nearest }) => (
            <tr key={`${type_key} ${health_status}`}>
              <td>
                <code>{type_key}</code>
              </td>
              <td>
                <Health health={health_status} />
              </td>
              <td className="number">{count}</td>
              <td>
                <span className="flex flex-wrap gap-x-3">
                  {nearest.map(({ resource_id, name }) => (
                    <ResourceLink key={resource_id} id={resource_id} data-row="">
                      {name}
                    </ResourceLink>
                  ))}
                </span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    ) : null}
  </div>
)
