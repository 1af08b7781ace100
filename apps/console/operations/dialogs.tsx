import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { Operation } from '../api/types.ts'
import { actionOf, mayPress } from '../command/allowed.tsx'
import { CommandDialog } from '../command/dialog.tsx'
import { confirmInProd } from '../kit/environment.ts'
import { t } from '../words/index.ts'
import { tOperation } from '../words/operation.ts'
import { tCommand } from '../words/operations/command.ts'

export type OperationCommand = 'pause' | 'resume' | 'cancel'

type PauseEffect = { running?: unknown[]; not_started?: number }
type ResumeEffect = { drifted?: unknown[]; next_nodes?: unknown[] }
type CancelEffect = PauseEffect & { compensations?: unknown[] }

const NAMED = 5
/** Force is offered once the server allows it: after the time that a cancellation has to finish. */
const MODES = ['graceful', 'compensate', 'force'] as const
type Mode = (typeof MODES)[number]
const cancelOf = (operation: Operation, mode: Mode) =>
  actionOf(operation, mode === 'graceful' ? 'cancel' : `cancel_${mode}`)

type Props = { operation: Operation; close: () => void }

/** Pauses, resumes or cancels one operation. Each dialog first shows its effect in numbers. */
export const OperationDialog = ({ command, ...props }: Props & { command: OperationCommand }) =>
  command === 'pause' ? <Pause {...props} /> : command === 'resume' ? <Resume {...props} /> : <Cancel {...props} />

/** The state and handlers that the three dialogs share. */
const useCommon = ({ operation, close }: Props, command: OperationCommand) => {
  const client = useQueryClient()
  const { title, button } = tOperation.operation[command]
  const refresh = () => {
    for (const noun of ['operation', 'graph', 'nodes', 'timeline'])
      void client.invalidateQueries({ queryKey: [noun, operation.operation_id] })
  }
  const path = `/v1/operations/${encodeURIComponent(operation.operation_id)}/${command}`
  const text = {
    name: 'reason' as const,
    label: tCommand.reason,
    needed: true,
    missing: tCommand.reason_needed,
  }
  return { path, common: { title, button, text, done: refresh, refused: refresh, close } }
}

const Pause = (props: Props) => {
  const { path, common } = useCommon(props, 'pause')
  return (
    <CommandDialog<PauseEffect, unknown>
      {...common}
      command={{ path, body: {} }}
      unseen
      consequences={({ running = [], not_started = 0 }) => (
        <p>{tOperation.operation.pause.effect(running.length, not_started)}</p>
      )}
    />
  )
}

const Resume = (props: Props) => {
  const { path, common } = useCommon(props, 'resume')
  const [acknowledged, setAcknowledged] = useState(false)
  return (
    <CommandDialog<ResumeEffect, unknown>
      {...common}
      command={{ path, body: acknowledged ? { acknowledge_drift: true } : {} }}
      consequences={({ drifted = [], next_nodes = [] }) => (
        <>
          <p>{tOperation.operation.resume.effect(names(next_nodes))}</p>
          {drifted.length > 0 ? <p>{tOperation.operation.resume.drifted(names(drifted))}</p> : null}
        </>
      )}
    >
      {props.operation.pause_reason === 'catalog_drift' ? (
        <label className="flex items-center gap-2">
          <input type="checkbox" checked={acknowledged} onChange={(event) => setAcknowledged(event.target.checked)} />
          {tOperation.operation.resume.acknowledge}
        </label>
      ) : null}
    </CommandDialog>
  )
}

const Cancel = (props: Props) => {
  const { operation } = props
  const { path, common } = useCommon(props, 'cancel')
  const [mode, setMode] = useState<Mode>(() => MODES.find((one) => mayPress(cancelOf(operation, one))) ?? 'graceful')
  return (
    <CommandDialog<CancelEffect, unknown>
      {...common}
      danger
      command={{ path, body: { mode } }}
      {...confirmInProd(operation.operation_id)}
      consequences={({ running = [], not_started = 0, compensations = [] }) => (
        <>
          <p>{tOperation.operation.cancel.effect(running.length, not_started)}</p>
          {mode === 'compensate' ? <p>{tOperation.operation.cancel.compensations(compensations.length)}</p> : null}
        </>
      )}
    >
      <fieldset className="flex flex-col gap-2">
        <legend className="label">{tOperation.operation.cancel.mode}</legend>
        {MODES.filter((choice) => choice !== 'force' || mayPress(cancelOf(operation, choice))).map((choice) => (
          <label key={choice} className="flex items-start gap-2">
            <input
              type="radio"
              name="mode"
              className="mt-1"
              checked={mode === choice}
              disabled={!mayPress(cancelOf(operation, choice))}
              onChange={() => setMode(choice)}
            />
            {tOperation.operation.cancel[choice]}
          </label>
        ))}
      </fieldset>
    </CommandDialog>
  )
}

/** Names of the items of a dry run; a long list is truncated, with the number of the rest. */
function names(items: unknown[]): string[] {
  const all = items.map((item) =>
    typeof item === 'string'
      ? item
      : String(
          (item as { name?: string; node_id?: string; resource_id?: string }).name ??
            (item as { node_id?: string }).node_id ??
            (item as { resource_id?: string }).resource_id ??
            '',
        ),
  )
  return all.length > NAMED ? [...all.slice(0, NAMED), t.others(all.length - NAMED)] : all
}
