import { and, desc, eq } from 'drizzle-orm'
import Type, { type Static } from 'typebox'
import { auditMatches } from '../../../db/audit.ts'
import { auth_events } from '../../../db/session/tables.ts'
import { allow } from '../../shared/auth/http.ts'
import { PageQuery } from '../../shared/contracts/identity/users.ts'
import {
  REFUSAL_WORDS,
  type RefusalCause,
  Refusals,
  type RefusalView,
} from '../../shared/contracts/session/refusals.ts'
import { text } from '../../shared/contracts/shapes.ts'
import { notFound } from '../../shared/errors.ts'
import { routes } from '../../shared/http/routes.ts'
import { isUuid } from '../../shared/ids.ts'
import { throwFromRpc, withRequestId } from '../../shared/rpc/client.ts'
import type { SessionDeps } from '../deps.ts'

const params = Type.Object({ machine_id: text('0195f0c2-0000-7000-8000-000000000001', { maxLength: 64 }) })
const common = { params, querystring: PageQuery, response: { 200: Refusals }, 'x-errors': [404] as 404[] }

/** Why machines got no token: for their owners and for whoever reads the audit log, never for the machine itself. */
export const refusalsRoutes = routes<SessionDeps>('machines', (app, { deps }) => {
  app.get('/v1/users/me/machines/:machine_id/refusals', {
    ...common,
    operationId: 'listOwnMachineRefusals',
    summary: 'List why a machine of yours got no token',
    description:
      'Refused keys, assertions and CI tokens that name a machine of which the caller is an owner, newest first.',
    preHandler: allow('self', { kind: 'R' }),
    handler: async (req) => {
      const [{ machine_id: machineId }, trace] = [req.params, withRequestId(String(req.id))]
      const asked = { machineId, ownerId: req.caller.user_id }
      const { user } = await deps.identity.getOwnedMachine(asked, trace).catch(throwFromRpc('identity'))
      if (!user) throw notFound('machine', machineId, 'not_found')
      return refusalsOf(deps, user.id, req.query)
    },
  })
  app.get('/v1/admin/machines/:machine_id/refusals', {
    ...common,
    operationId: 'listMachineRefusals',
    summary: 'List why a machine got no token',
    description: 'Refused keys, assertions and CI tokens that name the machine, newest first.',
    preHandler: allow('audit:read', { kind: 'R' }),
    handler: async (req) => {
      const { machine_id } = req.params
      if (!isUuid(machine_id)) throw notFound('machine', machine_id, 'not_found')
      return refusalsOf(deps, machine_id, req.query)
    },
  })
})

const refusalsOf = async (
  deps: SessionDeps,
  user_id: string,
  { page_size, page_token }: Static<typeof PageQuery>,
): Promise<Static<typeof Refusals>> => {
  const list = { route: 'refusals', user_id }
  const [before] = deps.pages.after(page_token, list) ?? []
  const rows = await deps.db
    .select()
    .from(auth_events)
    .where(
      and(auditMatches(auth_events, { user_id, type: 'machine_token', before }), eq(auth_events.outcome, 'denied')),
    )
    .orderBy(desc(auth_events.id))
    .limit(page_size + 1)
  const { items, next_page_token } = deps.pages.cut(rows, page_size, list, ({ id }) => [String(id)])
  return { items: items.flatMap(viewOf), next_page_token, as_of: deps.clock.now().toISOString() }
}

type Noted = { ip_address?: string; details?: { credential_id?: string; claim?: string } }

const viewOf = ({ at, reason, body }: typeof auth_events.$inferSelect): RefusalView[] => {
  const { ip_address, details = {} } = JSON.parse(body) as Noted
  if (reason === null || !(reason in REFUSAL_WORDS)) return []
  return [
    {
      at: new Date(at).toISOString(),
      cause: reason as RefusalCause,
      credential_id: details.credential_id || null,
      claim: details.claim ?? null,
      address: ip_address ?? null,
    },
  ]
}
