import {
  type CommandLogRow,
  claimCommands,
  dropClaims,
  getCommands,
  storeAnswers,
} from '../../../db/catalog/resources/commands.ts'
import { type Fingerprint, isSameContent, stillRunning, type Used } from '../../../db/command/keys.ts'
import type { Keys } from '../../../db/command/run.ts'
import { pluck } from '../../shared/data/pick.ts'
import { AppError, type CodeOf } from '../../shared/errors.ts'
import type { Uses } from '../deps.ts'

/** One command as it arrived: caller, key and content. */
export type Command = {
  command_id: string
  /** Caller, method and route: keys of different callers or routes never collide. */
  scope: string
  idempotency_key: string
  fingerprint: Fingerprint
  kind: 'internal' | 'public'
}

const DAY_MS = 86_400_000

/** The command log, by id and by scope and key (catalog.md 8). */
export const commandLog = ({ clock, config }: Uses<'clock' | 'config'>): Keys<Command> => ({
  claim: async (tx, commands) => {
    const now = clock.now()
    const rows = commands.map(({ kind, fingerprint, ...row }) => {
      const days = kind === 'internal' ? config.retain_internal_d : config.retain_public_d
      return {
        ...row,
        fingerprint: fingerprint[0],
        created_at: now.toISOString(),
        retain_until: new Date(now.getTime() + days * DAY_MS).toISOString(),
      }
    })
    const fresh = await claimCommands(tx, rows)
    const used = commands.filter(({ command_id }) => !fresh.has(command_id))
    const known = used.length > 0 ? await getCommands(tx, used) : []
    return commands.map((command) => (fresh.has(command.command_id) ? undefined : usedBy(command, known)))
  },
  store: async (tx, answered, last) => {
    const rows = answered.map(({ command: { command_id }, answer: { about, ...answer } }) => ({
      ...answer,
      command_id,
      resource_id: about ?? null,
    }))
    const writes = answered.flatMap((one) => one.writes)
    last(storeAnswers(tx, rows, writes))
    return answered.map(({ answer }) => answer)
  },
  drop: async (tx, commands) => {
    await dropClaims(tx, pluck(commands, 'command_id'))
  },
  names: ({ command_id, scope, idempotency_key }) => [command_id, `${scope} ${idempotency_key}`],
})

/** The answer in the row of this id, else of this key; or the refusal if the id or key belongs to another command. */
const usedBy = (command: Command, known: readonly CommandLogRow[]): Used | AppError => {
  const hasKey = ({ scope, idempotency_key }: CommandLogRow) =>
    scope === command.scope && idempotency_key === command.idempotency_key
  const row = known.find(({ command_id }) => command_id === command.command_id) ?? known.find(hasKey)
  if (!row) return stillRunning()
  if (!hasKey(row) || !isSameContent(row.fingerprint, command.fingerprint)) return refuseReuse(command, row)
  const { status, headers, body, resource_id: about } = row
  return {
    command_id: row.command_id,
    answer: { status: status ?? 200, headers: headers ?? {}, body: body ?? Buffer.alloc(0), about },
  }
}

const refuseReuse = ({ command_id, kind }: Command, known: CommandLogRow): AppError => {
  const reused = (code: CodeOf<'validation_error'>, detail: string) =>
    new AppError('validation_error', code, detail, {
      status: 422,
      hint: 'A retry must repeat the same command; a new command needs a new id and a new key.',
    })
  return known.command_id === command_id && kind === 'internal'
    ? reused('command_id_reused', `The command_id ${command_id} was used for another command.`)
    : reused('idempotency_key_reused', 'This idempotency key was used for another request.')
}
