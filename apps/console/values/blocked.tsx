import { Fragment } from 'react'
import type { OperationRow } from '../api/types.ts'
import { shown } from '../kit/format.ts'
import { tOperation } from '../words/operation.ts'
import { TimeText } from './time.tsx'

/** Why an operation is blocked, in the language of the page if the kind has words there. The server speaks English. */
export const BlockedOn = ({ by }: { by: OperationRow['blocked_on'] }) =>
  by.map(({ kind, id, until, message }, at) => {
    const said = tOperation.operation.blocked_on(kind, id, message)
    return (
      <Fragment key={`${kind} ${id} ${message}`}>
        {at > 0 ? '; ' : null}
        {said ? <span title={shown(message)}>{shown(said)}</span> : <span lang="en">{shown(message)}</span>}
        {said && kind === 'not_before' && until ? <TimeText at={until} form="both" /> : null}
      </Fragment>
    )
  })
