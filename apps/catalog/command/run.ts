import { getResource, lockAndGet } from '../../../db/catalog/resources/rows.ts'
import type { ResourceRow } from '../../../db/catalog/rows.ts'
import type { Last, Tx } from '../../../db/client.ts'
import { type Answer, type Decision, type Given, type Kernel, runEach } from '../../../db/command/run.ts'
import { AppError } from '../../shared/errors.ts'
import { uuidv5 } from '../../shared/ids.ts'
import type { Uses } from '../deps.ts'
import { type Command, commandLog } from './keys.ts'

export type CommandDeps = Uses<'clock' | 'config' | 'db' | 'telemetry' | 'wake'>

const NAMESPACE = '3c1b8a52-54a3-5a5e-9c2e-5f4a9c7d1e60'
let latest = { scope: '', id: '' }
/** The id of a public command, derived from its scope and key, so that a repeat names the same command. */
export const publicCommandId = (scope: string, key: string): string => {
  // All items of a request share one scope.
  if (latest.scope !== scope) latest = { scope, id: uuidv5(NAMESPACE, scope) }
  return uuidv5(latest.id, key)
}

/** A change's time, taken under its locks to follow commits; never earlier than the locked row's last change. */
export type Stamp = (locked?: Pick<ResourceRow, 'updated_at'>) => string
/** The work of a command, under its claim. */
export type CommandWork = (tx: Tx, stamp: Stamp) => Promise<Given>

/** Runs these commands, each refused on its own; `held`: what was locked and read along with the claim. */
export type MakeAll = (
  tx: Tx,
  fresh: readonly Command[],
  held: Row | undefined,
  last: Last,
) => Promise<(Given | AppError)[]>
type Row = { row: ResourceRow | undefined }
type CommandsOptions = {
  alone?: string | undefined
  refused?: (error: AppError, at: number) => void
  uncounted?: Command | undefined
}

/**
 * Runs each command once, in one transaction (catalog.md 8, steps 3 to 11). Claims come first: a repeat gets the first
 * answer byte for byte, even if the resource has changed since. A refusal releases its claim, so a corrected command
 * may reuse the id. `alone`: the resource to lock and read along with the claim of a single command. `uncounted`: the
 * request that the others are items of.
 */
export const runCommands = async (
  deps: CommandDeps,
  commands: readonly Command[],
  makeAll: MakeAll,
  { alone, refused, uncounted }: CommandsOptions = {},
): Promise<(Answer | AppError)[]> => {
  const [{ command_id } = { command_id: '' }] = commands
  const steps = {
    ...(alone !== undefined && {
      lock: async (tx: Tx): Promise<Row> => ({ row: await lockAndGet(tx, alone, command_id) }),
    }),
    decide: async (tx: Tx, held: Row | undefined, fresh: readonly Command[], last: Last) =>
      (await makeAll(tx, fresh, held, last)).map((made): Decision<undefined> | AppError =>
        made instanceof AppError ? made : { effect: undefined, keep: async () => made },
      ),
    ...(refused && { refused }),
  }
  const count = countOf(deps)
  try {
    const outcomes = await runEach<Row | undefined, undefined, Command>(kernelOf(deps), commands, steps)
    return outcomes.map((outcome, at) => {
      if (commands[at] !== uncounted) count(outcome)
      if (outcome instanceof AppError) return outcome
      if ('answer' in outcome) return outcome.answer
      throw new Error('a command of the catalog was not answered')
    })
  } catch (error) {
    count(error)
    throw error
  }
}

const kernelOf = (deps: CommandDeps): Kernel<Command> => ({
  db: deps.db,
  keys: commandLog(deps),
  clash: clashOf,
  raced: isRaced,
  wake: deps.wake,
})

const countOf = ({ telemetry }: Uses<'telemetry'>) => {
  const commands = telemetry.counter('signalbox_catalog_commands_total', 'Commands by result.', ['result'])
  return (outcome: unknown) => {
    const result =
      outcome instanceof Error
        ? outcome instanceof AppError && outcome.status < 500
          ? 'refused'
          : 'failed'
        : (outcome as { answer?: Answer }).answer?.replayed
          ? 'replayed'
          : 'answered'
    commands.inc({ result })
  }
}

/** Runs one command that changes no resource, or whose work already has all data about its rows. */
export const runCommand = async (deps: CommandDeps, command: Command, work: CommandWork): Promise<Answer> =>
  answerOf(deps, await runCommands(deps, [command], async (tx) => [await work(tx, stampOf(deps))]))

/** The answer of a single command; a repeat also states the resource's current version. */
export const answerOf = async ({ db }: Uses<'db'>, [answer]: readonly (Answer | AppError)[]): Promise<Answer> => {
  if (!answer || answer instanceof AppError) throw answer ?? new Error('no command was run')
  const known = answer.replayed && answer.about ? await getResource(db, answer.about) : undefined
  return known
    ? { ...answer, headers: { ...answer.headers, 'catalog-current-version': String(known.version) } }
    : answer
}

const causeOf = (error: unknown) => (error as { cause?: { code?: string; constraint?: string } }).cause ?? {}

/** The refusal behind a violated unique index, when someone else was first. */
export const clashOf = (error: unknown): AppError | undefined => {
  const { code, constraint } = causeOf(error)
  const clash = code === '23505' ? CLASHES[constraint ?? ''] : undefined
  return clash && alreadyExists(clash)
}

/** Commands on both ends of an edge do not wait for each other, so both may write it. */
const EDGES = new Set(['relationship_src_reltype_id_dst_pk', 'relationship_history_rel_no_rev_pk'])
const isRaced = (error: unknown): boolean => EDGES.has(causeOf(error).constraint ?? '')

type Clash = 'resource_id' | 'name' | 'identity'
const CLASHES: Record<string, Clash> = {
  resource_resource_id_unique: 'resource_id',
  resource_name_key: 'name',
  resource_identity_key: 'identity',
}

/** 409: the id, the name below the parent or the natural identity is taken. */
export const alreadyExists = (clash: Clash, existing_resource_id?: string): AppError =>
  new AppError('version_conflict', 'already_exists', `A resource with this ${clash} already exists.`, {
    extra: { clash, ...(existing_resource_id !== undefined && { existing_resource_id }) },
    hint: 'Change the existing resource, or choose another id and name.',
  })

export const stampOf =
  ({ clock }: Uses<'clock'>): Stamp =>
  (locked) => {
    const last = locked ? Date.parse(locked.updated_at) : 0
    return new Date(Math.max(clock.now().getTime(), last)).toISOString()
  }
