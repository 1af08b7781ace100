import type { WorkflowSignal } from '../../shared/contracts/engine/internal.ts'
import type { SignalBody } from '../../shared/contracts/engine/signals.ts'
import { calendarSteps } from '../calendar/change.ts'
import type { Command, Steps, Subject } from '../command/command.ts'
import type { ReplanDeps } from '../deps.ts'
import { checkResultSteps } from '../gates/external.ts'
import { cancelSteps, driftSteps, nodeSignalSteps, pauseSteps, resumeSteps } from '../operations/control.ts'

/** A signal of a service or of a machine. */
type Signal = WorkflowSignal | SignalBody

/** The command kind and class of each signal. */
const KINDS = {
  pause: { kind: 'pause', class: 'stop' },
  resume: { kind: 'resume', class: 'start' },
  cancel: { kind: 'cancel', class: 'stop' },
  node_signal: { kind: 'node_signal', class: 'edit' },
  external_check_result: { kind: 'gate_decided', class: 'start' },
  catalog_drift: { kind: 'catalog_drift', class: 'stop' },
  calendar_changed: { kind: 'calendar_changed', class: 'edit' },
} as const

/** Returns a signal's kind and class. Stopping never comes too late. */
export const kindOf = (signal: Signal): Pick<Command, 'kind' | 'class'> => ({
  ...KINDS[signal.type],
  ...(signal.type === 'external_check_result' && signal.body.verdict === 'failed' && { class: 'stop' as const }),
})

export const stepsOf = (deps: ReplanDeps, command: Command, signal: Signal): Steps<Subject> => {
  switch (signal.type) {
    case 'pause':
      return pauseSteps(deps, command)
    case 'resume':
      return resumeSteps(deps, command, signal.body?.acknowledge_drift ?? false)
    case 'cancel':
      return cancelSteps(deps, command, signal.body?.mode ?? 'graceful')
    case 'node_signal':
      return nodeSignalSteps(deps, command, signal.body)
    case 'external_check_result':
      return checkResultSteps(deps, command, signal.body)
    case 'catalog_drift':
      return driftSteps(deps, command, signal.body.resource_ids)
    case 'calendar_changed':
      return calendarSteps(deps, command)
  }
}
