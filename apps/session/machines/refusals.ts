import { and, desc } from 'drizzle-orm'
import Type, { type Static } from 'typebox'
import { type AuditFilter, auditMatches } from '../../../db/audit.ts'
import type { Queryable } from '../../../db/client.ts'
import { auth_events, IS_REFUSAL } from '../../../db/session/tables.ts'
import { allow } from '../../shared/auth/http.ts'
import { type User, UserKind } from '../../shared/contracts/gen/auth_pb.ts'
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
    handler: (req) => {
      const asked = { machineId: req.params.machine_id, ownerId: req.caller.user_id }
      return refusalsOf(deps, req, deps.identity.getOwnedMachine(asked, withRequestId(String(req.id))))
    },
  })
  app.get('/v1/admin/machines/:machine_id/refusals', {
    ...common,
    operationId: 'listMachineRefusals',
    summary: 'List why a machine got no token',
    description: 'Refused keys, assertions and CI tokens that name the machine, newest first.',
    preHandler: allow('audit:read', { kind: 'R' }),
    handler: (req) =>
      refusalsOf(deps, req, deps.identity.getUser({ id: req.params.machine_id }, withRequestId(String(req.id)))),
  })
})

type Asked = { params: Static<typeof params>; query: Static<typeof PageQuery> }

const refusalsOf = async (
  deps: SessionDeps,
  { params: { machine_id: user_id }, query: { page_size, page_token } }: Asked,
  found: Promise<{ user?: User | undefined }>,
): Promise<Static<typeof Refusals>> => {
  const { user } = await found.catch(throwFromRpc('identity'))
  const list = { route: 'refusals', user_id }
  const [before] = deps.pages.after(page_token, list) ?? []
  if (user?.kind !== UserKind.MACHINE) throw notFound('machine', user_id, 'not_found')
  const rows = await listRefusals(deps.db, { user_id: user.id, before }, page_size + 1)
  const { items, next_page_token } = deps.pages.cut(rows, page_size, list, ({ id }) => [String(id)])
  return { items: items.flatMap(viewOf), next_page_token, as_of: deps.clock.now().toISOString() }
}

/** Refused tokens of a machine, newest first: many of its others may lie between them. */
export const listRefusals = (db: Queryable, machine: Pick<AuditFilter, 'user_id' | 'before'>, limit: number) =>
  db
    .select()
    .from(auth_events)
    .where(and(auditMatches(auth_events, machine), IS_REFUSAL))
    .orderBy(desc(auth_events.id))
    .limit(limit)

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
