import { Link } from '@tanstack/react-router'
import { lazy, Suspense, useState } from 'react'
import type { Operation } from '../api/types.ts'
import { t } from '../i18n/index.ts'
import { ActionButton, actionOf, mayPress, WhyNot } from './allowed-action.tsx'

const Dialogs = lazy(() => import('./operation-dialogs.tsx').then((part) => ({ default: part.OperationDialog })))
export type OperationCommand = 'pause' | 'resume' | 'cancel'

/** What one may do with the operation now; what one may not, with the reason. */
export const OperationActions = ({ operation }: { operation: Operation }) => {
  const [open, setOpen] = useState<OperationCommand | null>(null)
  const pausable = actionOf(operation, 'pause')
  const resumable = actionOf(operation, 'resume')
  const paused = operation.status === 'paused' || operation.status === 'pausing'
  const gate = operation.open_gates[0]
  const [patch] = operation.open_patches
  const propose = actionOf(operation, 'propose_patch')
  const ended = operation.ended_at !== null
  return (
    <div className="flex max-w-96 flex-wrap items-start gap-2 sm:justify-end">
      {gate ? (
        <Link
          to="/operations/$operation_id/gates/$gate_id"
          params={{ operation_id: operation.operation_id, gate_id: gate.gate_id }}
          className="button main"
        >
          {t.operation.review_gate}
        </Link>
      ) : null}
      {patch ? (
        <Link
          to="/operations/$operation_id/patches/$patch_id"
          params={{ operation_id: operation.operation_id, patch_id: patch.patch_id }}
          className={gate ? 'button' : 'button main'}
        >
          {t.patch.review}
        </Link>
      ) : null}
      {ended ? null : (
        <>
          {mayPress(propose) ? (
            <Link
              to="/operations/$operation_id/patches/new"
              params={{ operation_id: operation.operation_id }}
              className="button"
            >
              {t.patch.propose}
            </Link>
          ) : null}
          {paused ? (
            <ActionButton action={resumable} press={() => setOpen('resume')} main={gate === undefined}>
              {t.operation.action.resume}
            </ActionButton>
          ) : (
            <ActionButton action={pausable} press={() => setOpen('pause')}>
              {t.operation.action.pause}
            </ActionButton>
          )}
          <ActionButton action={actionOf(operation, 'cancel')} press={() => setOpen('cancel')} danger>
            {t.operation.action.cancel}
          </ActionButton>
        </>
      )}
      {ended ? null : <WhyNot actions={[paused ? resumable : pausable, actionOf(operation, 'cancel')]} />}
      {open ? (
        <Suspense fallback={null}>
          <Dialogs operation={operation} command={open} close={() => setOpen(null)} />
        </Suspense>
      ) : null}
    </div>
  )
}
