import type { FastifyPluginCallback, FastifyReply, FastifyRequest } from 'fastify'
import { type Known, listScim, type ScimType, scimMembersOf } from '../../../db/identity/scim.ts'
import { allow } from '../../shared/auth/http.ts'
import { JSON_LIMITS } from '../../shared/data/json.ts'
import { notFound } from '../../shared/errors.ts'
import { SCIM_ERROR, SCIM_JSON } from '../../shared/http/problems.ts'
import type { IdentityDeps } from '../deps.ts'
import about from './about.json' with { type: 'json' }
import { sendScimError } from './errors.ts'
import { readPage, readShown } from './query.ts'
import { readPatch, readWhole } from './read.ts'
import { changeScim, createScim, findScim, removeScim, viewOf } from './resources.ts'
import { createAdmission, sync } from './source.ts'

type Routes = FastifyPluginCallback<{ deps: IdentityDeps }>
type Req = FastifyRequest<{ Params: { id: string }; Querystring: Record<string, unknown> }>

const BODY = 1_048_576
/** A body is full of members of a group before it reaches these bounds. */
const json_limits = { ...JSON_LIMITS, keys: 50_000, items: 50_000 }
/** SCIM describes itself, so the public API document omits it. */
const options = (kind: 'R' | 'W' | 'S') => ({
  schema: { hide: true, consumes: [SCIM_JSON, 'application/json'] },
  bodyLimit: BODY,
  config: { json_limits },
  preHandler: allow('none', { kind }),
})
const [read, write, stop] = [options('R'), options('W'), options('S')]

const send = (reply: FastifyReply, body: object, status = 200) => {
  const { meta } = body as { meta?: { version: string; location: string } }
  if (meta) reply.headers({ etag: meta.version, ...(status === 201 && { location: meta.location }) })
  return reply.code(status).type(`${SCIM_JSON}; charset=utf-8`).serializer(JSON.stringify).send(body)
}
const sendList = (reply: FastifyReply, Resources: readonly object[], totalResults = Resources.length, offset = 0) => {
  const schemas = ['urn:ietf:params:scim:api:messages:2.0:ListResponse']
  return send(reply, { schemas, totalResults, startIndex: offset + 1, itemsPerPage: Resources.length, Resources })
}

/** SCIM 2.0 (RFC 7643, 7644) for directories: who works here, and in which of their groups (federation.md 9). */
export const scimRoutes: Routes = (app, { deps }, done) => {
  app.setErrorHandler(sendScimError)
  app.decorateRequest('directory', null as never)
  // The key is verified before the body is read.
  app.addHook('onRequest', createAdmission(deps))
  app.get('/scim/v2/ServiceProviderConfig', read, (_req, reply) => send(reply, about.ServiceProviderConfig))
  for (const name of ['ResourceTypes', 'Schemas'] as const) {
    app.get(`/scim/v2/${name}`, read, (_req, reply) => sendList(reply, about[name]))
    app.get(`/scim/v2/${name}/:id`, read, (req, reply) => {
      const { id } = (req as Req).params
      const found = (about[name] as readonly { id: string }[]).find((one) => one.id === id)
      if (!found) throw notFound(name, id, 'not_found')
      return send(reply, found)
    })
  }
  // No directory searches over people and groups together (RFC 7644 3.4.3 allows 501 for that).
  app.post('/scim/v2/.search', read, (_req, reply) =>
    send(reply, { schemas: [SCIM_ERROR], status: '501', detail: 'Search Users or Groups with a filter.' }, 501),
  )
  app.get('/scim/v2/:unknown', read, (req) => {
    throw notFound('SCIM endpoint', (req.params as { unknown: string }).unknown, 'not_found')
  })
  for (const type of ['User', 'Group'] as const) resourceRoutes(app, deps, type)
  done()
}

const resourceRoutes = (app: Parameters<Routes>[0], deps: IdentityDeps, type: ScimType) => {
  const [all, each] = [`/scim/v2/${type}s`, `/scim/v2/${type}s/:id`]
  const viewsOf = async (req: Req, known: Known[]) => {
    const shown = readShown(req.query)
    const with_members = type === 'Group' && shown('members')
    const rows = with_members
      ? await scimMembersOf(
          deps.db,
          known.map(({ row }) => row.id),
        )
      : []
    const members = Map.groupBy(rows, ({ group_id }) => group_id)
    const membersOf = (id: string) => (members.get(id) ?? []).map(({ user_id }) => user_id)
    return known.map((it) => {
      const view = viewOf(deps, it, with_members ? membersOf(it.row.id) : undefined)
      return Object.fromEntries(Object.entries(view).filter(([name]) => shown(name)))
    })
  }
  const answer = async (req: unknown, reply: FastifyReply, known: Known, status = 200) =>
    send(reply, (await viewsOf(req as Req, [known]))[0] ?? {}, status)

  app.get(all, read, async (req: Req, reply) => {
    const page = readPage(type, req.query)
    const { total, rows } = await listScim(deps.db, req.directory.id, type, page, deps.config.AUTH__LOCAL__USERS)
    return sendList(reply, await viewsOf(req, rows), total, page.offset)
  })
  app.get(each, read, async (req: Req, reply) =>
    answer(req, reply, await findScim(deps, req.directory.id, type, req.params.id)),
  )
  app.post(all, write, async (req, reply) =>
    answer(req, reply, await sync(deps, req, (one) => createScim(one, type, readWhole(type, req.body))), 201),
  )
  app.put(each, write, async (req: Req, reply) => {
    const wanted = readWhole(type, req.body)
    return answer(req, reply, await sync(deps, req, (one) => changeScim(one, type, req.params.id, () => wanted)))
  })
  app.patch(each, write, async (req: Req, reply) => {
    const want = (members: readonly string[]) => readPatch(type, req.body, req.params.id, members)
    return answer(req, reply, await sync(deps, req, (one) => changeScim(one, type, req.params.id, want)))
  })
  app.delete(each, stop, async (req: Req, reply) => {
    await sync(deps, req, (one) => removeScim(one, type, req.params.id), { stops: true })
    return reply.code(204).send()
  })
}
