import { Link } from '@tanstack/react-router'
import { Suspense, useState } from 'react'
import type { Operation } from '../api/types.ts'
import { ActionButton, actionOf, isNever, mayPress, WhyNot } from '../command/allowed.tsx'
import { interventionsOfOperation } from '../interventions/offered.ts'
import { useWishes } from '../kit/wish.ts'
import { lazyPart } from '../ui/lazy.ts'
import { GateLink, PatchLink, useMayCreate } from '../values/links.tsx'
import { tChange } from '../words/change.ts'
import { tOperation } from '../words/operation.ts'
import type { OperationCommand } from './effects.tsx'

const Dialogs = lazyPart(() => import('./dialogs.tsx').then((part) => ({ default: part.OperationDialog })))
const InterveneDialog = lazyPart(() =>
  import('../interventions/dialog.tsx').then((part) => ({ default: part.InterveneDialog })),
)
const AGAIN = { kind: 'change', type: '', procedure: '', resource: '' } as const
const CANCELS = ['cancel', 'cancel_compensate', 'cancel_force']
/** The possible actions on the operation; actions that are not allowed show the reason. */
export const OperationActions = ({ operation }: { operation: Operation }) => {
  const [open, setOpen] = useState<OperationCommand | 'intervene' | null>(null)
  const pausable = actionOf(operation, 'pause')
  const resumable = actionOf(operation, 'resume')
  const paused = operation.status === 'paused' || operation.status === 'pausing'
  const gate = operation.open_gates[0]
  const [patch] = operation.open_patches
  const propose = actionOf(operation, 'propose_patch')
  // A running cancellation can be escalated: to compensation, and by force once its time is over.
  const cancels = CANCELS.map((action) => actionOf(operation, action))
  const cancel = cancels.find(mayPress) ?? cancels[0]
  const ended = operation.ended_at !== null
  const interventions = interventionsOfOperation(operation)
  const again = useMayCreate() && ended
  const intervene = interventions.offered.find(mayPress) ?? interventions.offered[0]
  const apart = mayPress(intervene) || isNever(intervene)
  useWishes(operation.operation_id, (what) => {
    const action = { pause: pausable, resume: resumable, cancel, intervene }[what]
    if (mayPress(action)) setOpen(what as OperationCommand | 'intervene')
    return action !== undefined
  })
  return (
    <div className="flex max-w-96 flex-wrap items-start gap-2 lg:justify-end lg:max-w-140">
      {gate ? (
        <GateLink operation_id={operation.operation_id} gate_id={gate.gate_id} className="button main">
          {tOperation.operation.review_gate}
        </GateLink>
      ) : null}
      {patch ? (
        <PatchLink
          operation_id={operation.operation_id}
          patch_id={patch.patch_id}
          className={gate ? 'button' : 'button main'}
        >
          {tChange.patch.review}
        </PatchLink>
      ) : null}
      {ended ? null : (
        <>
          {mayPress(propose) ? (
            <Link
              to="/operations/$operation_id/patches/new"
              params={{ operation_id: operation.operation_id }}
              className="button"
            >
              {tChange.patch.propose}
            </Link>
          ) : null}
          {paused ? (
            <ActionButton action={resumable} press={() => setOpen('resume')} main={gate === undefined}>
              {tOperation.operation.action.resume}
            </ActionButton>
          ) : (
            <ActionButton action={pausable} press={() => setOpen('pause')}>
              {tOperation.operation.action.pause}
            </ActionButton>
          )}
          {intervene ? (
            <ActionButton action={intervene} press={() => setOpen('intervene')}>
              {tChange.intervene.open}
            </ActionButton>
          ) : null}
          <ActionButton action={cancel} press={() => setOpen('cancel')} danger>
            {tOperation.operation.action.cancel}
          </ActionButton>
        </>
      )}
      {again ? (
        <>
          <Link to="/new" search={{ ...AGAIN, from: operation.operation_id, back: '' }} className="button">
            {tOperation.operation.action.back}
          </Link>
          <Link to="/new" search={{ ...AGAIN, from: operation.operation_id }} className="button">
            {tOperation.operation.action.again}
          </Link>
        </>
      ) : null}
      {ended ? null : (
        <WhyNot
          actions={[paused ? resumable : pausable, ...interventions.offered, cancel, propose]}
          // If one intervention is possible, its dialog says why others are not. Without the button a reason stands alone.
          fold={(action) => isNever(action) || (apart && interventions.offered.includes(action))}
        />
      )}
      {open ? (
        <Suspense fallback={null}>
          {open === 'intervene' ? (
            <InterveneDialog subject={interventions} close={() => setOpen(null)} />
          ) : (
            <Dialogs operation={operation} command={open} close={() => setOpen(null)} />
          )}
        </Suspense>
      ) : null}
    </div>
  )
}
