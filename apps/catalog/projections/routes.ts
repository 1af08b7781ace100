import type { FastifyRequest } from 'fastify'
import Type from 'typebox'
import { requireScope } from '../../shared/auth/http.ts'
import { closed } from '../../shared/contracts/catalog/common.ts'
import {
  PROJECTIONS,
  ProjectionParams,
  ProjectionPaused,
  ProjectionProving,
  Projections,
} from '../../shared/contracts/catalog/projections.ts'
import { notFound } from '../../shared/errors.ts'
import { routes } from '../../shared/http/routes.ts'
import type { CatalogDeps } from '../deps.ts'
import { type Keeper, pauseProjection, proveProjection, readProjections } from './manage.ts'
import type { Name } from './proofs.ts'

const keeperOf = (req: FastifyRequest): Keeper => ({
  actor: `svc:${req.service.name}`,
  action: `${req.method} ${req.routeOptions.url}`,
  request_id: req.id,
})

const nameOf = (name: string): Name => {
  const known = PROJECTIONS.find((one) => one === name)
  if (!known) throw notFound('read model', name, 'route')
  return known
}

const ACTIONS = [
  {
    verb: 'pause' as const,
    operationId: 'pauseProjection',
    summary: 'Stop feeding a read model',
    description:
      'Applies to every process of the catalog. Reads continue and report their age; new events wait in the log.',
  },
  {
    verb: 'resume' as const,
    operationId: 'resumeProjection',
    summary: 'Feed a read model again',
    description: 'Continues from where it stopped, in every process of the catalog.',
  },
  {
    verb: 'verify' as const,
    operationId: 'verifyProjection',
    summary: 'Verify a read model',
    description:
      'Builds a second copy beside the one in use and compares both at one position of the log. The result is in GET /internal/v1/projections of the same process.',
  },
  {
    verb: 'rebuild' as const,
    operationId: 'rebuildProjection',
    summary: 'Rebuild a read model',
    description: 'Works like verify, and the new copy then replaces the one in use. Reads continue meanwhile.',
  },
]

/** The progress of this process's read models, and the actions on them (catalog.md 7.5, 11). */
export const projectionsRoutes = routes<CatalogDeps>('internal', (app, { deps }) => {
  const preHandler = requireScope('catalog:admin')

  app.get('/internal/v1/projections', {
    operationId: 'listProjections',
    summary: 'Read the state of the read models',
    description:
      'Returns state, log position, lag and the last verification result of the graph and the operations index of the answering process. Not in the specification.',
    querystring: Type.Object({}, closed),
    response: { 200: Projections },
    preHandler,
    handler: () => readProjections(deps),
  })

  for (const { verb, operationId, summary, description } of ACTIONS) {
    const feeds = verb === 'pause' || verb === 'resume'
    app.post(`/internal/v1/projections/:name/${verb}`, {
      operationId,
      summary,
      description: `${description} Not in the specification.`,
      params: ProjectionParams,
      response: { ...(feeds ? { 200: ProjectionPaused } : { 202: ProjectionProving }) },
      preHandler,
      handler: async (req, reply) => {
        const [name, keeper] = [nameOf(req.params.name), keeperOf(req)]
        const done = feeds
          ? pauseProjection(deps, name, verb === 'pause', keeper)
          : proveProjection(deps, name, verb, keeper)
        return reply.code(feeds ? 200 : 202).send((await done) as never)
      },
    })
  }
})
