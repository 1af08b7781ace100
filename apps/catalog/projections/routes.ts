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
import { errorReplies, type Routes } from '../../shared/http/app.ts'
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
      'In every process of the catalog. Reads continue and say how old they are; what comes waits in the log.',
  },
  {
    verb: 'resume' as const,
    operationId: 'resumeProjection',
    summary: 'Feed a read model again',
    description: 'From where it stopped, in every process of the catalog.',
  },
  {
    verb: 'verify' as const,
    operationId: 'verifyProjection',
    summary: 'Prove a read model',
    description:
      'Builds it anew beside the one in use and compares both at one place of the log. What was found is in GET /internal/v1/projections of the same process.',
  },
  {
    verb: 'rebuild' as const,
    operationId: 'rebuildProjection',
    summary: 'Build a read model anew',
    description: 'As verify, and what was built takes the place of the one in use. No read waits or fails meanwhile.',
  },
]

/** How far the read models of this process are, and what may be done to them (catalog.md 7.5, 11). */
export const projectionsRoutes: Routes<CatalogDeps> = async (app, { deps }) => {
  const preHandler = requireScope('catalog:admin')
  const tags = ['internal']

  app.get('/internal/v1/projections', {
    schema: {
      operationId: 'listProjections',
      summary: 'Read how far the read models are',
      description:
        'The graph and the index of operations of the process that answers: state, place in the log, lag, and what the last comparison with the truth has found. Not in the specification.',
      tags,
      querystring: Type.Object({}, closed),
      response: { 200: Projections, ...errorReplies },
    },
    preHandler,
    handler: () => readProjections(deps),
  })

  for (const { verb, operationId, summary, description } of ACTIONS) {
    const feeds = verb === 'pause' || verb === 'resume'
    app.post(`/internal/v1/projections/:name/${verb}`, {
      schema: {
        operationId,
        summary,
        description: `${description} Not in the specification.`,
        tags,
        params: ProjectionParams,
        response: { ...(feeds ? { 200: ProjectionPaused } : { 202: ProjectionProving }), ...errorReplies },
      },
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
}
