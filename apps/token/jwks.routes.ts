import Type from 'typebox'
import { allow } from '../shared/auth/http.ts'
import { ArrayOf } from '../shared/contracts/shapes.ts'
import { isKnown, ReadHeaders, routes, sendUnchanged } from '../shared/http/routes.ts'
import type { TokenDeps } from './deps.ts'

const Jwks = Type.Object(
  {
    keys: ArrayOf({
      kty: Type.Literal('RSA'),
      n: Type.String(),
      e: Type.String(),
      kid: Type.String(),
      alg: Type.Literal('RS256'),
      use: Type.Literal('sig'),
    }),
  },
  {
    description: 'The public signing keys (RFC 7517).',
    examples: [
      { keys: [{ kty: 'RSA', n: 'u1SU1LfVLPHCozMxH2Mo…', e: 'AQAB', kid: 'NzbLsXh8…', alg: 'RS256', use: 'sig' }] },
    ],
  },
)

/** The public keys that verify user tokens. */
export const jwksRoutes = routes<Pick<TokenDeps, 'keyring'>>('tokens', (app, { deps: { keyring } }) => {
  for (const [path, operationId] of [
    ['/jwks', 'getJwks'],
    ['/.well-known/jwks.json', 'getSigningKeys'],
  ] as const) {
    app.get(path, {
      operationId,
      summary: 'Read the public signing keys',
      description:
        'Returns the keys that verify access and refresh tokens, including the next one. Cache them for 300 s.',
      headers: ReadHeaders,
      'x-reply-headers': ['etag'],
      response: { 200: Jwks, 304: Type.Null() },
      preHandler: allow('none', { kind: 'R' }),
      handler: async (req, reply) => {
        const { body, etag } = keyring.published()
        reply.header('cache-control', 'public, max-age=300').header('etag', etag)
        if (isKnown(req, etag)) return sendUnchanged(reply)
        return reply
          .type('application/json; charset=utf-8')
          .serializer(String)
          .send(body as never)
      },
    })
  }
})
