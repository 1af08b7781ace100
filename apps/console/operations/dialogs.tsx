import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { Operation } from '../api/types.ts'
import { actionOf, mayPress } from '../command/allowed.tsx'
import { CommandDialog } from '../command/dialog.tsx'
import { Check } from '../forms/select.tsx'
import { confirmInProd } from '../kit/environment.ts'
import { tOperation } from '../words/operation.ts'
import { tCommand } from '../words/operations/command.ts'
import { type Effect, EffectText, type Mode, ModeField, type OperationCommand } from './effects.tsx'

/** Force is offered once the server allows it: after the time that a cancellation has to finish. */
const MODES: Mode[] = ['graceful', 'compensate', 'force']
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
  const text = { name: 'reason' as const, label: tCommand.reason, needed: true, missing: tCommand.reason_needed }
  return { path, common: { title, button, text, done: refresh, refused: refresh, close } }
}

const Pause = (props: Props) => {
  const { path, common } = useCommon(props, 'pause')
  return (
    <CommandDialog<Effect, unknown>
      {...common}
      command={{ path, body: {} }}
      unseen
      consequences={(effect) => <EffectText command="pause" effect={effect} />}
    />
  )
}

const Resume = (props: Props) => {
  const { path, common } = useCommon(props, 'resume')
  const [acknowledged, setAcknowledged] = useState(false)
  return (
    <CommandDialog<Effect, unknown>
      {...common}
      command={{ path, body: acknowledged ? { acknowledge_drift: true } : {} }}
      consequences={(effect) => <EffectText command="resume" effect={effect} />}
    >
      {props.operation.pause_reason === 'catalog_drift' ? (
        <Check on={acknowledged} change={setAcknowledged}>
          {tOperation.operation.resume.acknowledge}
        </Check>
      ) : null}
    </CommandDialog>
  )
}

const Cancel = (props: Props) => {
  const { operation } = props
  const { path, common } = useCommon(props, 'cancel')
  const [mode, setMode] = useState<Mode>(() => MODES.find((one) => mayPress(cancelOf(operation, one))) ?? 'graceful')
  return (
    <CommandDialog<Effect, unknown>
      {...common}
      danger
      command={{ path, body: { mode } }}
      {...confirmInProd(operation.operation_id)}
      consequences={(effect) => <EffectText command="cancel" mode={mode} effect={effect} />}
    >
      <ModeField
        modes={MODES.filter((choice) => choice !== 'force' || mayPress(cancelOf(operation, choice)))}
        isOff={(choice) => !mayPress(cancelOf(operation, choice))}
        value={mode}
        change={setMode}
      />
    </CommandDialog>
  )
}
