import { operationLook } from '../../shared/contracts/client/status.ts'
import type { OperationRow } from '../api/types.ts'
import { t } from '../words/index.ts'
import { tOperation } from '../words/operation.ts'

/** Operation statuses in which some of the ended nodes never ran. */
const UNDONE = new Set(['failed', 'cancelled', 'timed_out'])

type ProgressBarProps = { progress: OperationRow['progress']; status: string; blockedOn: OperationRow['blocked_on'] }

/** How many nodes are done, as words and a bar; failures are named. */
export const ProgressBar = ({ progress, status, blockedOn }: ProgressBarProps) => (
  <span className={`flex flex-col gap-1 tone-${operationLook(status, blockedOn).tone}`}>
    <span className="tabular-nums">
      {UNDONE.has(status)
        ? tOperation.operations.ended(progress.done, progress.total)
        : t.of(progress.done, progress.total)}
      {progress.failed > 0 ? <span className="text-bad">, {tOperation.operations.failed(progress.failed)}</span> : null}
    </span>
    <progress
      className="progress"
      value={progress.done}
      max={Math.max(1, progress.total)}
      aria-label={tOperation.operation.nodes_done(progress.done, progress.total)}
    />
  </span>
)
