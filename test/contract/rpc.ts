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
/** The caller's rights are checked first, so a method for which this service has no scope does not read the message. */
const UNREADABLE = { 400: 'invalid_argument', 403: 'permission_denied' }

/** Each way a call of a method can be wrong, and the Connect code for it (auth.md 2). */
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

/** Returns what is wrong with the answer, or `undefined` if it is the expected refusal. */
export const rpcFault = ({ status, text, body }: Answer, right: Broken): string | undefined => {
  if (body?.code === undefined || right.codes[status] !== body.code) return `${status} ${text.slice(0, 200)}`
  if (typeof body.message !== 'string' || body.message === '') return 'says nothing'
  return /node_modules|\bat \S+ \(|\.ts:\d+/.test(text) ? `shows what is inside: ${text}` : undefined
}
