import type { FastifyRequest } from 'fastify'
import { preferencesOf, savePreferences } from '../../../db/identity/preferences.ts'
import { lockUser } from '../../../db/identity/queries.ts'
import { allow } from '../../shared/auth/http.ts'
import { Preferences } from '../../shared/contracts/identity/preferences.ts'
import { isTimezone } from '../../shared/data/calendar.ts'
import { AppError } from '../../shared/errors.ts'
import { CommandHeaders, routes, sendStored } from '../../shared/http/routes.ts'
import type { ChangeDeps } from '../deps.ts'
import { changeOnce } from '../mutations.ts'
import { throwIf } from '../rules.ts'

const PATH = '/v1/users/me/preferences'

/** A person's display preferences for the console. No one else reads or changes them. */
export const preferencesRoutes = routes<ChangeDeps>('preferences', (app, { deps }) => {
  app.get(PATH, {
    operationId: 'getPreferences',
    summary: 'Read your display preferences',
    description: "Returns the caller's console settings; empty until they are first set.",
    response: { 200: Preferences },
    preHandler: allow('self', { kind: 'R' }),
    handler: (req) => preferencesOf(deps.db, req.caller.user_id),
  })
  app.put(PATH, {
    operationId: 'setPreferences',
    summary: 'Set your display preferences',
    description: "Replaces all of the caller's preferences. If two devices write at once, the later write wins.",
    headers: CommandHeaders,
    body: Preferences,
    response: { 200: Preferences },
    preHandler: allow('self', { kind: 'W' }),
    handler: async (req, reply) => sendStored(reply, await setPreferences(deps, req, req.body)),
  })
})

/** The lock on the person keeps the audit log in the order of the rows. */
const setPreferences = (deps: ChangeDeps, req: FastifyRequest, wanted: Preferences) =>
  changeOnce(deps, req, { arming: false }, async (tx) => {
    throwIf(refuseZone(wanted.zone))
    const { user_id } = req.caller
    await lockUser(tx, user_id)
    const before = await preferencesOf(tx, user_id)
    await savePreferences(tx, user_id, wanted)
    return { status: 200, body: wanted, action: 'preferences.set', object: `user:${user_id}`, before, after: wanted }
  })

const refuseZone = (zone = 'utc'): AppError | undefined => {
  if (zone === 'utc' || zone === 'local' || isTimezone(zone)) return undefined
  const violation = { pointer: '/zone', code: 'schema_violation', message: 'is not an IANA time zone' }
  return new AppError('validation_error', 'schema_violation', `${violation.pointer} ${violation.message}.`, {
    violations: [violation],
  })
}
