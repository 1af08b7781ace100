import { Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import Type from 'typebox'
import { ArtifactParams, ArtifactTaken } from '../../shared/contracts/engine/executions.ts'
import { routes } from '../../shared/http/routes.ts'
import type { Uses } from '../deps.ts'
import { type Bringer, bringerOf, giveArtifact, takeArtifact } from './artifacts.ts'
import { type AgentBase, byItsToken } from './executions.routes.ts'
import { tokenRefused } from './executions.ts'

/** A body that stays in the connection until it is read; a schema finds no member in it. */
class Bytes {
  readonly #stream: Readable
  constructor(stream: Readable) {
    this.#stream = stream
  }
  static of(body: unknown): Readable {
    return body instanceof Bytes ? body.#stream : Readable.from([])
  }
}

/** The endpoint for the bytes of artifacts, separate from the results that announce them. */
type Deps = Uses<'artifacts' | 'db' | 'trust'>

export const artifactsRoutes = routes<Deps, { base: AgentBase }>('agents', (app, { deps, base }) => {
  app.plain.addContentTypeParser('application/octet-stream', (_req, payload, done) => done(null, new Bytes(payload)))
  const bringers = new WeakMap<FastifyRequest, Bringer>()
  const onRequest = async (req: FastifyRequest) => {
    const bringer = await bringerOf(deps, req.headers.authorization)
    // No service comes through the gateway.
    if (base === '/v1' && bringer.token_sha256 === undefined) throw tokenRefused()
    bringers.set(req, bringer)
  }
  app.put(`${base}/artifacts/:sha256`, {
    ...byItsToken(base, 'the execution token | artifacts:write'),
    onRequest,
    config: { endless: true },
    operationId: 'uploadArtifact',
    summary: 'Upload the bytes of an artifact',
    description:
      'Sent as application/octet-stream by the bearer of the execution token whose attempt announced the artifact; on the internal listener also by a service with the scope artifacts:write. Stored only if digest and size match the announcement.',
    params: ArtifactParams,
    response: { 200: ArtifactTaken },
    'x-errors': [422],
    handler: async (req) => {
      return takeArtifact(deps, bringers.get(req) as Bringer, req.params.sha256, Bytes.of(req.body), String(req.id))
    },
  })
  app.get(`${base}/artifacts/:sha256`, {
    ...byItsToken(base, 'the execution token'),
    onRequest,
    config: { endless: true },
    operationId: 'fetchArtifact',
    summary: 'Fetch an artifact of an earlier attempt',
    description: 'The bytes of an artifact of the same operation, by the bearer of an open execution token.',
    params: ArtifactParams,
    produces: ['application/octet-stream'],
    response: { 200: Type.Unknown() },
    handler: async (req, reply) => {
      const bytes = await giveArtifact(deps, bringers.get(req) as Bringer, req.params.sha256)
      return reply.type('application/octet-stream').send(bytes)
    },
  })
})
