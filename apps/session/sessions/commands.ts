import type { FastifyReply, FastifyRequest } from 'fastify'
import { fingerprintOf, type IdempotentRequest, readKey } from '../../../db/command/keys.ts'
import { type Answer, answerOf, type Given, keysIn, runAnswered } from '../../../db/command/run.ts'
import { idempotency } from '../../../db/session/tables.ts'
import { deriveKeys } from '../../shared/data/digest.ts'
import { AppError } from '../../shared/errors.ts'
import { AUTH_CODES } from '../../shared/http/edge-codes.ts'
import { toAppError } from '../../shared/http/problems.ts'
import { sendStored } from '../../shared/http/routes.ts'
import type { SessionDeps } from '../deps.ts'

export type Command = Omit<IdempotentRequest, 'fingerprint'> & { parts: unknown }

/** A public mutation as its Idempotency-Key identifies it. */
export const commandOf = (req: FastifyRequest, caller = `user:${req.caller.user_id}`): Command => ({
  caller,
  route: `${req.method} ${req.routeOptions.url}`,
  key: String(req.headers['idempotency-key']),
  parts: { params: req.params, query: req.query, body: req.body ?? null },
})

/**
 * Runs a mutation once per key. Its effect is in Redis and may be repeated. So while Postgres is unavailable, an action
 * that ends sessions runs without the key's row: it must not wait for a database that does not hold sessions. A
 * password is hashed for seconds (`hashes`), before the transaction: else sixteen at once would hold all connections.
 */
export const runOnce = async (
  deps: SessionDeps,
  { parts, ...command }: Command,
  run: () => Promise<Given>,
  { needs_row = false, hashes = false }: { needs_row?: boolean; hashes?: boolean } = {},
): Promise<Answer> => {
  const fingerprint = fingerprintOf(deriveKeys(deps.config.secrets, 'fingerprint'), parts)
  let ran: Given | undefined
  const runOnlyOnce = async () => {
    ran ??= await run()
    return ran
  }
  const request = { ...command, fingerprint }
  if (hashes && !(await readKey(deps.db, idempotency, request))) await runOnlyOnce()
  try {
    return await runAnswered({ db: deps.db, keys: keysIn(idempotency) }, { request }, async () => ({
      effect: undefined,
      keep: runOnlyOnce,
    }))
  } catch (error) {
    if (needs_row) throw error
    noteAway(deps, error)
    return { ...answerOf(await runOnlyOnce()), replayed: false }
  }
}

/** Throws every error but that of a database that is away. */
const noteAway = (deps: SessionDeps, error: unknown): void => {
  if (error instanceof AppError || toAppError(error, AUTH_CODES).status !== 503) throw error
  deps.telemetry.log.warn({ err: error }, 'a command runs without the row of its key')
}

/** Runs the caller's mutation once per key and sends its answer. */
export const answerOnce = async (
  deps: SessionDeps,
  req: FastifyRequest,
  reply: FastifyReply,
  run: () => Promise<Given>,
  options?: { needs_row?: boolean },
) => sendStored(reply, await runOnce(deps, commandOf(req), run, options))

export const NO_CONTENT: Given = { status: 204, body: undefined }

type Removal = {
  there: () => Promise<boolean>
  /** Returns whether it existed; `repeated`: for a request that has found it before. */
  remove: (repeated: boolean) => Promise<boolean>
  missing: () => AppError
}

/**
 * Removes something that another store holds, once per key. That it existed is stored first, under a key of its own:
 * the repeat of a request that died after the removal is answered 204, not 404.
 */
export const removeOnce = async (
  deps: SessionDeps,
  command: Command,
  { there, remove, missing }: Removal,
  options?: { needs_row: true },
): Promise<Answer> => {
  const unless = (gone: boolean): Given => {
    if (!gone) throw missing()
    return NO_CONTENT
  }
  const begun = { ...command, route: `${command.route} begun` }
  const repeated = await runOnce(deps, begun, async () => unless(await there()), { needs_row: true }).then(
    ({ replayed }) => replayed,
    (error: unknown) => {
      if (error instanceof AppError && error.category === 'not_found') return false
      if (options?.needs_row) throw error
      noteAway(deps, error)
      return undefined
    },
  )
  // A second wait for the database would be longer than the caller's.
  if (repeated === undefined) return { ...answerOf(unless(await remove(false))), replayed: false }
  return runOnce(deps, command, async () => unless((await remove(repeated)) || repeated), options)
}
