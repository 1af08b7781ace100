import { Link } from '@tanstack/react-router'
import { tOperation } from '../words/operation.ts'

/** The row of a node's facts that names its target; null if it has none. */
export const TargetRow = ({ target_id }: { target_id: string | null }) =>
  target_id === null ? null : (
    <>
      <dt>{tOperation.node.target}</dt>
      <dd>
        <Link to="/resources/$resource_id" params={{ resource_id: target_id }} search={{ tab: 'overview' }}>
          {target_id}
        </Link>
      </dd>
    </>
  )
