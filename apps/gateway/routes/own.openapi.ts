import Type from 'typebox'
import { completeDocument, type Document, type Operation } from '../../shared/http/openapi.ts'
import { Problem } from '../../shared/http/routes.ts'
import { ROUTES } from './table.ts'

const Status = Type.Object({ status: Type.Enum(['ready', 'degraded', 'unready']) })
const Part = Type.Object(
  {
    app: Type.String({ examples: ['catalog'] }),
    instance: Type.String({ examples: ['host-1'] }),
    status: Type.Enum(['ready', 'degraded', 'unready', 'silent'], {
      description: 'silent: no report for 30 s and no orderly stop. After 10 minutes it is left out.',
    }),
    since: Type.String({ description: 'Since when it has reported this.', examples: ['2026-01-31T12:00:00.000Z'] }),
    checks: Type.Record(Type.String(), Type.Unknown()),
    lags: Type.Record(Type.String(), Type.Number()),
  },
  { additionalProperties: true },
)

const json = (schema: object) => ({ content: { 'application/json': { schema: structuredClone(schema) } } })

/** The gateway has no Fastify routes, so this describes the rows of its table that it answers itself. */
const DESCRIBED: Record<string, Operation> = {
  '/health/live': {
    operationId: 'getLiveness',
    summary: 'Check that the process runs',
    tags: ['health'],
    description: 'The process is running. Orchestrators use this to decide on a restart.',
    responses: { 200: { description: 'It does.', ...json(Type.Object({ status: Type.Literal('live') })) } },
  },
  '/health/ready': {
    operationId: 'getReadiness',
    summary: 'Check that the platform takes traffic',
    tags: ['health'],
    description: 'Whether this process can take traffic. The reasons are on the internal listener only.',
    responses: { 200: { description: 'It may.', ...json(Status) }, 503: { description: 'Not now.', ...json(Status) } },
  },
  '/api/v1/platform/health': {
    operationId: 'getPlatformHealth',
    summary: 'Read the health of the platform',
    tags: ['health'],
    description: 'Returns the last report of every process of the platform.',
    responses: {
      200: {
        description: 'The parts.',
        ...json(Type.Object({ parts: Type.Array(Part), as_of: Type.String({ format: 'date-time' }) })),
      },
    },
  },
}

export const ownDocument = (): Document => {
  const paths = Object.fromEntries(
    ROUTES.filter(({ upstream }) => upstream === 'gateway').map(({ method, path, permission, kind }) => {
      const described = DESCRIBED[path]
      if (!described) throw new Error(`${path} of the gateway is not described in own.openapi.ts`)
      const operation = { ...described, 'x-action-kind': kind, 'x-permissions': [permission].flat() }
      return [path, { [method.toLowerCase()]: operation }]
    }),
  )
  const about = { title: 'Signalbox gateway', description: 'Endpoints that the gateway answers itself.' }
  const info = { ...about, version: '1.0.0' }
  return completeDocument({ openapi: '3.1.0', info, paths } as Document, about, Problem)
}
