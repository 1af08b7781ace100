import { setTimeout as delay } from 'node:timers/promises'
import { type CommandLogRow, claimCommand, getCommand, storeAnswer } from '../../../db/catalog/resources/commands.ts'
import { getResource, lockAndGet } from '../../../db/catalog/resources/rows.ts'
import type { ResourceRow } from '../../../db/catalog/rows.ts'
import { type Last, type Tx, together, transact } from '../../../db/client.ts'
import { inOne, type Statement } from '../../../db/rows.ts'
import { crashPoint } from '../../shared/crash.ts'
import { AppError, type CodeOf } from '../../shared/errors.ts'
import { uuidv5 } from '../../shared/ids.ts'
import type { CatalogDeps } from '../deps.ts'

/** One command as it came in: who, under which key, with which content. */
export type Command = {
  command_id: string
  /** Caller, method and route: keys of two callers or routes never meet. */
  scope: string
  idempotency_key: string
  fingerprint: Buffer
  kind: 'internal' | 'public'
  /** The resource that it changes, when it looks at no other: locked and read along with the claim. */
  alone?: string | undefined
}

export type Answer = { status: number; headers: Record<string, string>; body: Buffer; replayed: boolean }
/** What the work of a command gives: the answer, the resource it was about, if it was one, and its last writes, unsent. */
export type Work = {
  status: number
  headers?: Record<string, string>
  body: unknown
  resource_id: string | null
  writes?: Statement[]
}

const NAMESPACE = '3c1b8a52-54a3-5a5e-9c2e-5f4a9c7d1e60'
/** Public commands are named by their scope and key, so that a repeat names the same command. */
export const publicCommandId = (scope: string, key: string): string => uuidv5(uuidv5(NAMESPACE, scope), key)

/** Thrown inside a command's work when what it locked was not enough: the transaction starts again. */
export class Again extends Error {}

const TRIES = 3
const DAY_MS = 86_400_000

/** The resource of a command that is `alone`, under its lock; none where there is none. */
export type Held = { row: ResourceRow | undefined }
/**
 * The time of a change. It is asked for under the locks of the change, so that times follow the order of commits, and
 * lies not before the last change of what is locked, if another clock was ahead.
 */
export type Stamp = (locked?: Pick<ResourceRow, 'updated_at'>) => string
/** The work of a command, under its claim. */
export type CommandWork = (tx: Tx, stamp: Stamp, held?: Held) => Promise<Work>

/**
 * Runs one command once, in one transaction (catalog.md 8, steps 3 to 11). The claim comes first: a repeat gets the
 * first answer byte for byte, however far the resource has moved on. A refusal rolls the claim back with all else, so a
 * corrected command may use the id again. Deadlocks are run again.
 */
export const runCommand = (deps: CatalogDeps, command: Command, work: CommandWork): Promise<Answer> =>
  counting(
    deps,
    commit(deps, (tx, last) => claimAndWork(tx, deps, command, work, last)),
  )

/** Counts what became of a command. */
const counting = async ({ telemetry }: CatalogDeps, done: Promise<Answer>): Promise<Answer> => {
  const commands = telemetry.counter('catalog_commands_total', 'Commands by what became of them.', ['result'])
  try {
    const answer = await done
    commands.inc({ result: answer.replayed ? 'replayed' : 'answered' })
    return answer
  } catch (error) {
    commands.inc({ result: error instanceof AppError && error.status < 500 ? 'refused' : 'failed' })
    throw error
  }
}

/** Runs work in one transaction, up to three times: after a deadlock, or when what it locked was not enough. */
export const commit = async <T>(deps: CatalogDeps, run: (tx: Tx, last: Last) => Promise<T>): Promise<T> => {
  for (let tries = 1; ; tries++) {
    try {
      const result = await transact(deps.db, async (tx, last) => {
        const done = await run(tx, last)
        crashPoint('api.before_commit')
        return done
      })
      crashPoint('api.after_commit')
      deps.wake()
      return result
    } catch (error) {
      const clash = clashOf(error)
      if (clash) throw clash
      if (tries >= TRIES || !(error instanceof Again || causeOf(error).code === '40P01')) throw error
      await delay(Math.random() * 20 * tries)
    }
  }
}

const causeOf = (error: unknown) => (error as { cause?: { code?: string; constraint?: string } }).cause ?? {}

/** The refusal behind a unique index that let somebody else through. */
export const clashOf = (error: unknown): AppError | undefined => {
  const { code, constraint } = causeOf(error)
  const clash = code === '23505' ? CLASHES[constraint ?? ''] : undefined
  return clash && alreadyExists(clash)
}

type Clash = 'resource_id' | 'name' | 'identity'
const CLASHES: Record<string, Clash> = {
  resource_resource_id_unique: 'resource_id',
  resource_name_key: 'name',
  resource_identity_key: 'identity',
}

/** 409: the id, the name below the parent or the natural identity is taken. */
export const alreadyExists = (clash: Clash, existing_resource_id?: string): AppError =>
  new AppError('version_conflict', 'already_exists', `A resource with this ${clash} exists already.`, {
    extra: { clash, ...(existing_resource_id !== undefined && { existing_resource_id }) },
    hint: 'Change the existing resource, or choose another id and name.',
  })

export const stampOf =
  ({ clock }: Pick<CatalogDeps, 'clock'>): Stamp =>
  (locked) => {
    const last = locked ? Date.parse(locked.updated_at) : 0
    return new Date(Math.max(clock.now().getTime(), last)).toISOString()
  }

/** The row that claims a command's id and key. */
export const claimOf = (deps: CatalogDeps, { kind, alone: _, ...row }: Command, now: Date) => {
  const retain_d = kind === 'internal' ? deps.config.retain_internal_d : deps.config.retain_public_d
  return {
    ...row,
    created_at: now.toISOString(),
    retain_until: new Date(now.getTime() + retain_d * DAY_MS).toISOString(),
  }
}

/**
 * One command inside a transaction: its claim and its work, or the first answer again. Its last writes are handed to
 * `last`, if there is one, else waited for.
 */
export const claimAndWork = async (
  tx: Tx,
  deps: CatalogDeps,
  command: Command,
  work: CommandWork,
  last?: Last,
): Promise<Answer> => {
  const now = deps.clock.now()
  const { command_id, alone } = command
  const claim = claimCommand(tx, claimOf(deps, command, now))
  const [claimed, held] = await together(claim, hold(tx, command_id, alone))
  if (!claimed) return replay(tx, command)

  const { status, headers = {}, body, resource_id, writes = [] } = await work(tx, stampOf(deps), held)
  const bytes = Buffer.from(JSON.stringify(body))
  const sent = inOne(storeAnswer(tx, command_id, { status, headers, body: bytes, resource_id }), ...writes).execute()
  if (last) last(sent)
  else await sent
  return { status, headers, body: bytes, replayed: false }
}

const hold = async (tx: Tx, command_id: string, alone: string | undefined): Promise<Held | undefined> =>
  alone === undefined ? undefined : { row: await lockAndGet(tx, alone, command_id) }

const reused = (code: CodeOf<'validation_error'>, detail: string) =>
  new AppError('validation_error', code, detail, {
    status: 422,
    hint: 'A repeat must be the same command; a new command needs a new id and a new key.',
  })

/** The stored answer, or the refusal of an id or key that was used for something else (step 4). */
const replay = async (tx: Tx, command: Command): Promise<Answer> => {
  const answer = replayOf(command, await getCommand(tx, command))
  const known = answer.resource_id === null ? undefined : await getResource(tx, answer.resource_id)
  return known
    ? { ...answer, headers: { ...answer.headers, 'catalog-current-version': String(known.version) } }
    : answer
}

/** What a repeat gets from the row that holds its id or key. */
export const replayOf = (
  command: Command,
  known: CommandLogRow | undefined,
): Answer & { resource_id: string | null } => {
  if (!known) {
    throw new AppError('version_conflict', 'in_progress', 'The same command is still running.', {
      retryable: true,
      retry_after_ms: 1000,
    })
  }
  const refusal = refuseReuse(command, known)
  if (refusal) throw refusal
  const { status, headers, body, resource_id } = known
  return { status: status ?? 200, headers: headers ?? {}, body: body ?? Buffer.alloc(0), resource_id, replayed: true }
}

const refuseReuse = (command: Command, known: CommandLogRow): AppError | undefined => {
  const sameKey = known.scope === command.scope && known.idempotency_key === command.idempotency_key
  const sameContent = known.fingerprint.equals(command.fingerprint)
  if (sameKey && sameContent) return undefined
  if (known.command_id === command.command_id && command.kind === 'internal')
    return reused('command_id_reused', `The command_id ${command.command_id} was used for another command.`)
  return reused('idempotency_key_reused', 'This idempotency key was used for another request.')
}
