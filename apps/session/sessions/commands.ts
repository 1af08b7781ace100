import type { FastifyReply, FastifyRequest } from 'fastify'
import { fingerprintOf, type IdempotentRequest, readKey } from '../../../db/command/keys.ts'
import { type Answer, answerOf, type Given, keysIn, runAnswered } from '../../../db/command/run.ts'
import { idempotency } from '../../../db/session/tables.ts'
import { deriveKey } from '../../shared/data/digest.ts'
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
  const fingerprint = fingerprintOf(deriveKey(deps.config.secrets[0], 'fingerprint'), parts)
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
    const refusal = error instanceof AppError ? error : toAppError(error, AUTH_CODES)
    if (needs_row || error instanceof AppError || refusal.status !== 503) throw error
    deps.telemetry.log.warn({ err: error }, 'a command runs without the row of its key')
    return { ...answerOf(await runOnlyOnce()), replayed: false }
  }
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
