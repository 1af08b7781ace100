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

type Broken = { what: string; codes: Record<number, string>; sent: Parameters<typeof send>[1] }

const UNAUTHENTICATED = { 401: 'unauthenticated' }
/** Who may call at all is told first, so a method that this service has no scope for does not read the message. */
const UNREADABLE = { 400: 'invalid_argument', 403: 'permission_denied' }

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
    { what: 'no token', codes: UNAUTHENTICATED, sent: call(undefined, '{}') },
    { what: 'garbage', codes: UNAUTHENTICATED, sent: call('garbage', '{}') },
    { what: 'a user token', codes: UNAUTHENTICATED, sent: call(tokens.user, '{}') },
    { what: 'another audience', codes: UNAUTHENTICATED, sent: call(tokens.foreign, '{}') },
    { what: 'no scope', codes: { 403: 'permission_denied' }, sent: call(tokens.powerless, '{}') },
    { what: 'broken JSON', codes: UNREADABLE, sent: call(tokens.good, '{') },
    { what: 'no object', codes: UNREADABLE, sent: call(tokens.good, '[7]') },
  ]
}

/** What is wrong with the answer; nothing when it is the refusal that it should be. */
export const rpcFault = ({ status, text, body }: Answer, right: Broken): string | undefined => {
  if (body?.code === undefined || right.codes[status] !== body.code) return `${status} ${text.slice(0, 200)}`
  if (typeof body.message !== 'string' || body.message === '') return 'says nothing'
  return /node_modules|\bat \S+ \(|\.ts:\d+/.test(text) ? `shows what is inside: ${text}` : undefined
}
