import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import { CommandDialog } from '../command/dialog.tsx'
import { ShownOnce } from '../command/shown-once.tsx'
import { Button } from '../forms/button.tsx'
import { losingQuery } from '../queries/admin.ts'
import { meQuery } from '../queries/me.ts'
import { useTyped } from '../session/typed.ts'
import { GateLink } from '../values/links.tsx'
import { tAdmin } from '../words/admin.ts'
import { Fields, type FormField, initial, isComplete, type Typed } from './fields.tsx'

/** One administrative command: its dialog, its fields, and the request that they make. */
export type Act = {
  /** The full command in words; it begins with the word on the button. */
  title: string
  button: string
  effect: string
  /** What it is about, above its effect. */
  about?: React.ReactNode
  danger?: boolean
  method?: 'PUT' | 'PATCH' | 'DELETE'
  path: string | ((typed: Typed) => string)
  /** Refused if the object has changed since this version of it was read. */
  version?: number
  fields?: FormField[]
  body?: (typed: Typed) => Record<string, unknown>
  /** Why it must not be sent as it is typed. */
  wrong?: (typed: Typed) => string | undefined
  /** Whether the command takes a reason. */
  reason?: boolean
  /** Shown after a 202; by default, that a second administrator must confirm it. */
  accepted?: string
  /** Shown beside the key or link that is shown only once. */
  shown?: string
  /** The rights that it takes away: the dialog names the open gates that lose a voter. */
  removes?: Parameters<typeof losingQuery>[0]
}

/** Whether every list of the form has loaded; the dialog keeps the act as it was when it opened. */
const hasChoices = ({ fields = [] }: Act): boolean => fields.every(({ choices }) => choices?.length !== 0)

/** The commands of a page: `button` draws one for those who may use it, `dialog` the open one. */
export const useActs = () => {
  const permissions = useQuery(meQuery()).data?.permissions ?? []
  const [act, setAct] = useState<Act>()
  const may = (permission: string) => permissions.includes(permission)
  return {
    may,
    button: (one: Act, permission = 'identity:admin') =>
      may(permission) ? (
        <Button key={one.title} aria-label={one.title} disabled={!hasChoices(one)} onClick={() => setAct(one)}>
          {one.button}
        </Button>
      ) : null,
    dialog: act ? <ActDialog act={act} close={() => setAct(undefined)} /> : null,
  }
}

/** `change`: a second administrator must confirm it; a key that came with it works from then on. */
type Reply = { key?: string; enrolment?: { url: string }; change?: object } | null

const ActDialog = ({ act, close }: { act: Act; close: () => void }) => {
  const client = useQueryClient()
  // No field of an act is a secret.
  const [typed, setTyped] = useTyped<Typed>(act.title, () => initial(act.fields ?? []))
  const [secret, setSecret] = useState<string>()
  const [waits, setWaits] = useState(false)
  /** The dialog closes itself after its command; a secret in the answer keeps it open. */
  const kept = useRef(false)
  const words = waits ? `${act.shown} ${tAdmin.second}` : (act.shown ?? '')
  if (secret !== undefined)
    return <ShownOnce title={act.title} words={words} shown={[[tAdmin.copy, secret]]} close={close} />
  const { method, version } = act
  const path = typeof act.path === 'string' ? act.path : act.path(typed)
  const refresh = () => void client.invalidateQueries({ queryKey: ['admin'] })
  return (
    <CommandDialog<never, Reply>
      title={act.title}
      button={act.button}
      danger={act.danger ?? false}
      command={{
        ...(method && { method }),
        ...(version !== undefined && { version }),
        ...{ path, body: act.body?.(typed) ?? {} },
      }}
      preview={null}
      accepted={act.accepted ?? tAdmin.second}
      blocked={!isComplete(act.fields ?? [], typed)}
      why={act.wrong?.(typed)}
      {...(act.reason
        ? { text: { name: 'reason', label: tAdmin.reason, needed: true, missing: tAdmin.reason_needed } as const }
        : {})}
      done={(reply) => {
        const shown = reply?.key ?? reply?.enrolment?.url
        kept.current = shown !== undefined
        setSecret(shown)
        setWaits(reply?.change !== undefined)
        refresh()
      }}
      refused={refresh}
      close={() => (kept.current ? undefined : close())}
    >
      {act.about}
      <p>{act.effect}</p>
      {act.removes ? <Losing removed={act.removes} /> : null}
      {act.fields ? <Fields fields={act.fields} typed={typed} change={setTyped} /> : null}
    </CommandDialog>
  )
}

const SHOWN = 5

/** The open gates that lose a voter or a vote, first those that no one could approve then. */
const Losing = ({ removed }: { removed: Parameters<typeof losingQuery>[0] }) => {
  const { data, isError } = useQuery(losingQuery(removed))
  const items = data?.items.toSorted((a, b) => Number(b.blocked) - Number(a.blocked)) ?? []
  const words = tAdmin.losing
  return (
    <div aria-live="polite" className="flex flex-col gap-1">
      {isError ? <p className="text-wait">{words.unknown}</p> : null}
      {data && items.length === 0 ? <p className="text-muted">{words.none}</p> : null}
      <ul className="flex flex-col gap-1">
        {items.slice(0, SHOWN).map(({ operation_id, gate_id, question, operation_title, ...gate }) => (
          <li key={`${operation_id} ${gate_id}`} className={gate.blocked ? 'text-wait' : ''}>
            <GateLink operation_id={operation_id} gate_id={gate_id}>
              <bdi>{question}</bdi>
            </GateLink>{' '}
            (<bdi>{operation_title}</bdi>): {gate.blocked ? words.blocked : words.left(gate.voters_left)}
            {gate.votes_lost > 0 ? ` ${words.votes(gate.votes_lost)}` : null}
          </li>
        ))}
      </ul>
      {items.length > SHOWN ? <p>{words.more(items.length - SHOWN)}</p> : null}
    </div>
  )
}
