import type { DescService } from '@bufbuild/protobuf'
import { Credential, Identity, Session, Token } from '../../apps/shared/contracts/gen/auth_pb.ts'
import type { Answer, send } from './requests.ts'

/** Every method of every RPC service, by the app that serves it. */
const SERVICES: Record<string, DescService> = {
  session: Session,
  identity: Identity,
  credential: Credential,
  token: Token,
}
export type Method = { app: string; name: string; path: string }
export const METHODS: Method[] = Object.entries(SERVICES).flatMap(([app, service]) =>
  service.methods.map(({ name }) => ({ app, name: `${app}.${name}`, path: `/${service.typeName}/${name}` })),
)

type Broken = { what: string; status: number; code: string; sent: Parameters<typeof send>[1] }

/** What a call of a method may have wrong about it, and the Connect code that is right for it (auth.md 2). */
export const brokenCalls = (tokens: { good: string; powerless: string; user: string; foreign: string }): Broken[] => {
  const call = (token: string | undefined, body: string, more: Record<string, string> = {}) => ({
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'connect-protocol-version': '1',
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...more,
    },
    body,
  })
  return [
    { what: 'no token', status: 401, code: 'unauthenticated', sent: call(undefined, '{}') },
    { what: 'garbage', status: 401, code: 'unauthenticated', sent: call('garbage', '{}') },
    { what: 'a user token', status: 401, code: 'unauthenticated', sent: call(tokens.user, '{}') },
    { what: 'another audience', status: 401, code: 'unauthenticated', sent: call(tokens.foreign, '{}') },
    { what: 'no scope', status: 403, code: 'permission_denied', sent: call(tokens.powerless, '{}') },
    { what: 'broken JSON', status: 400, code: 'invalid_argument', sent: call(tokens.good, '{') },
    { what: 'no object', status: 400, code: 'invalid_argument', sent: call(tokens.good, '[7]') },
  ]
}

/** What is wrong with the answer; nothing when it is the refusal that it should be. */
export const rpcFault = ({ status, text, body }: Answer, right: Broken): string | undefined => {
  if (status !== right.status || body?.code !== right.code) return `${status} ${text.slice(0, 200)}`
  if (typeof body.message !== 'string' || body.message === '') return 'says nothing'
  return /node_modules|\bat \S+ \(|\.ts:\d+/.test(text) ? `shows what is inside: ${text}` : undefined
}
