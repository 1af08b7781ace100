import { tOperation } from '../words/operation.ts'
import { ResourceLink } from './links.tsx'

/** The row of a node's facts that names its target; null if it has none. */
export const TargetRow = ({ target_id }: { target_id: string | null }) =>
  target_id === null ? null : (
    <>
      <dt>{tOperation.node.target}</dt>
      <dd>
        <ResourceLink id={target_id} />
      </dd>
    </>
  )
