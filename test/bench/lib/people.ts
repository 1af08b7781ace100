import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { create } from '@bufbuild/protobuf'
import { Identity, PrincipalSchema, UserStatus } from '../../../apps/shared/contracts/gen/auth_pb.ts'
import { createHttpApp, listen } from '../../../apps/shared/http/app.ts'
import { AUTH_CODES } from '../../../apps/shared/http/edge-codes.ts'
import { newJti, signToken } from '../../../apps/shared/jwt/sign.ts'
import { registerRpc, rpcService } from '../../../apps/shared/rpc/client.ts'
import { audienceOf } from '../../../apps/shared/service/scopes.ts'
import { loadRegistry } from '../../../apps/shared/service/tokens.ts'
import { createTelemetry } from '../../../apps/shared/telemetry.ts'

const ISSUER = 'http://localhost'
const user_id = randomUUID()

/** One administrator: keys and principals for an app under test, and her tokens. */
export const startPeople = async (registry_file: string) => {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const telemetry = createTelemetry('bench', { level: 'silent' })
  const services = loadRegistry(registry_file)
  const user = { id: user_id, username: 'ada', status: UserStatus.ACTIVE }
  const grants = [{ id: randomUUID(), role: 'admin', scope: {} }]
  const principal = create(PrincipalSchema, { user, grants, groupKeys: [], version: 1n })
  const rpc = createHttpApp({ telemetry, codes: AUTH_CODES, internal: true })
  const scopes = Object.fromEntries(Identity.methods.map(({ localName }) => [localName, 'identity:read']))
  const served = rpcService(Identity, scopes as never, { getPrincipal: async () => ({ principal }) } as never)
  registerRpc(rpc, { registry: services, audience: audienceOf('identity'), services: [served] })
  rpc.get('/jwks', async () => ({
    keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'bench', use: 'sig', alg: 'RS256' }],
  }))
  const at = await listen(rpc, '127.0.0.1', 0)
  const token = (): string => {
    const iat = Math.floor(Date.now() / 1000)
    return signToken(
      'access',
      {
        iss: ISSUER,
        aud: 'signalbox-api',
        sub: user_id,
        iat,
        exp: iat + 900,
        jti: newJti(),
        type: 'access',
        username: 'ada',
        session_id: randomUUID(),
        auth_time: iat,
        amr: ['pwd'],
        cm: 'json',
      },
      { kid: 'bench', private_key: privateKey },
    )
  }
  return {
    env: { AUTH__JWKS__URL: `${at}/jwks`, AUTH__RPC__IDENTITY_URL: at, AUTH__TOKENS__ISSUER: ISSUER },
    token,
    stop: async () => {
      await rpc.close()
      services.close()
    },
  }
}
