import { Link } from '@tanstack/react-router'
import type { Plan } from '../api/types.ts'
import { OperationLink } from './links.tsx'

/** The obstacles to a plan, in the server's words, with links to the operations and plans. */
export const Conflicts = ({ conflicts }: Pick<Plan, 'conflicts'>) => (
  <ul className="flex flex-col gap-1">
    {conflicts.map(({ kind, id, resource_id, message }) => (
      <li key={`${kind} ${id} ${resource_id}`} lang="en" className="wrap-anywhere">
        {id === '' ? (
          // Of an operation or a plan that this person may not see.
          message
        ) : ['lease', 'waits', 'dependent', 'failed'].includes(kind) ? (
          <OperationLink id={id} data-row="">
            {message}
          </OperationLink>
        ) : kind === 'plan' ? (
          <Link to="/plans/$plan_id" params={{ plan_id: id }} search={{ tab: 'changes' }} data-row="">
            {message}
          </Link>
        ) : (
          message
        )}
      </li>
    ))}
  </ul>
)
