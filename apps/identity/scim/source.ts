import { create } from '@bufbuild/protobuf'
import type { FastifyRequest } from 'fastify'
import { appendAuditTo } from '../../../db/audit.ts'
import type { Tx } from '../../../db/client.ts'
import { user_events } from '../../../db/identity/tables.ts'
import { wakeRelay } from '../../../db/outbox.ts'
import { giverOf, type Provider } from '../../shared/auth/providers.ts'
import { AuthenticateMachineRequestSchema } from '../../shared/contracts/gen/auth_pb.ts'
import { AppError } from '../../shared/errors.ts'
import { addressKey } from '../../shared/web/addresses.ts'
import { lockControl } from '../control/dual.ts'
import type { IdentityDeps } from '../deps.ts'
import { authenticateMachine } from '../machines/authenticate.ts'
import { actorOf, inControl, marked, recordDenial } from '../mutations.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The provider whose people the calling machine manages by SCIM. */
    directory: Provider
  }
}

/** One request of a directory, with its transaction. `leaves` names the account that it disables. */
export type Sync = { deps: IdentityDeps; tx: Tx; req: FastifyRequest; leaves: (user_id: string) => void }

/** How many refusals of one address this process puts into the audit log in a minute: a flood must not fill it. */
const MOST_NOTED = 60
const MINUTE_MS = 60_000

/** Returns the check of each request, with its own count of refusals. */
export const createAdmission = (deps: IdentityDeps) => {
  let since = Number.NEGATIVE_INFINITY
  const counts = new Map<string, number>()
  const noteRefusal = async (req: FastifyRequest, address: string, error: { code: string }): Promise<void> => {
    if (performance.now() - since > MINUTE_MS) {
      counts.clear()
      since = performance.now()
    }
    const count = (counts.get(addressKey(address)) ?? 0) + 1
    counts.set(addressKey(address), count)
    if (count <= MOST_NOTED) await recordDenial(deps, req, error)
  }
  return (req: FastifyRequest) => admit(deps, req, noteRefusal)
}

/** Authenticates the sender. The key is that of a machine in the providers file, which binds it to one provider. */
const admit = async (
  deps: IdentityDeps,
  req: FastifyRequest,
  noteRefusal: (req: FastifyRequest, address: string, error: { code: string }) => Promise<void>,
): Promise<void> => {
  const [, apiKey = ''] = /^bearer (sbk_[^ ]+)$/i.exec(req.headers.authorization ?? '') ?? []
  const address = String(req.headers['x-forwarded-for'] ?? req.ip)
  const proved = await authenticateMachine(deps, create(AuthenticateMachineRequestSchema, { apiKey, address }))
  const { user, permissions = [] } = proved
  if (!user) {
    const { cause = '', machineId } = proved
    Object.assign(req, { caller: { user_id: machineId || undefined, roles: [] } })
    if (machineId) await noteRefusal(req, address, { code: cause === 'network' ? 'network_refused' : cause })
    throw cause === 'network' ? networkRefused() : keyRefused()
  }
  Object.assign(req, { caller: { user_id: user.id, roles: [] } })
  const provider = deps.providers.list().find(({ scim }) => scim?.machine === user.username)
  if (!provider || !permissions.includes('scim:write')) {
    const error = new AppError('policy_denied', 'permission_missing', 'This API key may not provision users.', {
      hint: 'Send the key of the machine that the file of providers names, with the permission scim:write.',
    })
    await noteRefusal(req, address, error)
    throw error
  }
  req.directory = provider
}

const networkRefused = () =>
  new AppError('policy_denied', 'network_refused', 'The API key may not be used from this address.')
/** One answer for every cause; the audit log has the cause, for a key that names one of ours. */
const keyRefused = () =>
  new AppError('invalid_token', 'invalid_token', 'The API key is not valid.', {
    headers: { 'www-authenticate': 'Bearer error="invalid_token"' },
    hint: 'Send the API key of the machine that the file of providers names.',
  })

/**
 * Runs one request in one transaction, under the lock for all changes of users and rights. Repeats change no row. If it
 * disables an account, it waits until the relay has ended the sessions, for at most 2 s. One that `stops` overtakes the
 * requests that wait for their turn.
 */
export const sync = async <T>(
  deps: IdentityDeps,
  req: FastifyRequest,
  run: (sync: Sync) => Promise<T>,
  { stops = false } = {},
): Promise<T> => {
  let leaver: string | undefined
  const leaves = (user_id: string) => {
    leaver = user_id
  }
  const once = () =>
    deps.db.transaction(async (tx) => {
      await lockControl(deps, tx)
      return run({ deps, tx, req, leaves })
    })
  const result = await (stops ? once() : inControl(deps.db, once))
  void wakeRelay(deps.db, 'identity')
  if (leaver !== undefined) await marked(deps, { user_id: leaver })
  return result
}

export const note = (
  { deps, tx, req }: Sync,
  event: { action: string; object: string; before?: unknown; after?: unknown },
) =>
  appendAuditTo(tx, user_events, deps.keys.audit, {
    ...event,
    outcome: 'done',
    reason: giverOf(req.directory.id),
    actor: actorOf(req),
    request_id: String(req.id),
  })
