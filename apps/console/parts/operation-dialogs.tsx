import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { environment } from '../api/environment.ts'
import { shortId } from '../api/format.ts'
import type { Operation } from '../api/types.ts'
import { t } from '../i18n/index.ts'
import { actionOf, mayPress } from './allowed-action.tsx'
import { CommandDialog } from './command-dialog.tsx'
import type { OperationCommand } from './operation-actions.tsx'

type PauseEffect = { running?: unknown[]; not_started?: number }
type ResumeEffect = { drifted?: unknown[]; next_nodes?: unknown[] }
type CancelEffect = PauseEffect & { compensations?: unknown[] }

const NAMED = 5

/** Pause, resume and cancel of one operation: each says beforehand what will happen, in numbers. */
export const OperationDialog = ({
  operation,
  command,
  close,
}: {
  operation: Operation
  command: OperationCommand
  close: () => void
}) => {
  const client = useQueryClient()
  const [mode, setMode] = useState<'graceful' | 'compensate'>('graceful')
  const [acknowledged, setAcknowledged] = useState(false)
  const words = t.command[command]
  const refresh = () => {
    for (const noun of ['operation', 'graph', 'nodes', 'timeline'])
      void client.invalidateQueries({ queryKey: [noun, operation.operation_id] })
  }
  const common = {
    title: words.title,
    button: words.button,
    text: { name: 'reason' as const, label: t.command.reason, needed: true, missing: t.command.reason_needed },
    done: refresh,
    refused: refresh,
    close,
  }
  const path = `/v1/operations/${encodeURIComponent(operation.operation_id)}/${command}`
  if (command === 'pause') {
    return (
      <CommandDialog<PauseEffect, unknown>
        {...common}
        command={{ path, body: {} }}
        consequences={({ running = [], not_started = 0 }) => (
          <p>{t.command.pause.effect(running.length, not_started)}</p>
        )}
      />
    )
  }
  if (command === 'resume') {
    return (
      <CommandDialog<ResumeEffect, unknown>
        {...common}
        command={{ path, body: acknowledged ? { acknowledge_drift: true } : {} }}
        consequences={({ drifted = [], next_nodes = [] }) => (
          <>
            <p>{t.command.resume.effect(names(next_nodes))}</p>
            {drifted.length > 0 ? <p>{t.command.resume.drifted(names(drifted))}</p> : null}
          </>
        )}
      >
        {operation.pause_reason === 'catalog_drift' ? (
          <label className="flex items-center gap-2">
            <input type="checkbox" checked={acknowledged} onChange={(event) => setAcknowledged(event.target.checked)} />
            {t.command.resume.acknowledge}
          </label>
        ) : null}
      </CommandDialog>
    )
  }
  const compensate = actionOf(operation, 'cancel_compensate')
  return (
    <CommandDialog<CancelEffect, unknown>
      {...common}
      danger
      command={{ path, body: { mode } }}
      {...(environment.tier === 'prod' ? { confirm: shortId(operation.operation_id) } : {})}
      consequences={({ running = [], not_started = 0, compensations = [] }) => (
        <>
          <p>{t.command.cancel.effect(running.length, not_started)}</p>
          {mode === 'compensate' ? <p>{t.command.cancel.compensations(compensations.length)}</p> : null}
        </>
      )}
    >
      <fieldset className="flex flex-col gap-2">
        <legend className="label">{t.command.cancel.mode}</legend>
        {(['graceful', 'compensate'] as const).map((choice) => (
          <label key={choice} className="flex items-start gap-2">
            <input
              type="radio"
              name="mode"
              className="mt-1"
              checked={mode === choice}
              disabled={choice === 'compensate' && compensate !== undefined && !mayPress(compensate)}
              onChange={() => setMode(choice)}
            />
            {t.command.cancel[choice]}
          </label>
        ))}
      </fieldset>
    </CommandDialog>
  )
}

/** Names of whatever the dry run listed; a long list is cut with its count. */
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
