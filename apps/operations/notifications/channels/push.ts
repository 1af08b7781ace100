import { createHash, createPrivateKey, createPublicKey, type JsonWebKey, type KeyObject, sign } from 'node:crypto'
import { ConfigError, readJsonFile } from '../../../shared/config.ts'
import { matcherOf } from '../../../shared/data/pattern.ts'
import { createAgent } from '../../../shared/web/agent.ts'
import { mayReach, type Rule } from '../../../shared/web/egress.ts'
import type { OperationsConfig } from '../../config.ts'
import type { Message } from '../messages/decisions.ts'
import { pushOf } from '../messages/push.ts'
import { encryptPush, type PushKeys } from './encrypt.ts'
import { post, type Reach, type Sent } from './reach.ts'

/** A subscription's stored part, sealed: the endpoint that takes the browser's pushes, and the keys to encrypt them. */
export type Subscription = PushKeys & { endpoint: string }
export type Push = NonNullable<ReturnType<typeof createPush>>

const TOKEN_S = 12 * 3600
/** How long a push service keeps trying a device that is off. */
const TTL_S = 86_400

/** Web Push (RFC 8030), only to browsers' push services: encrypted for the browser, signed with our key (RFC 8292). */
export const createPush = (config: OperationsConfig, console_url: string, rulesFor: (url: URL) => Rule[]) => {
  if (!config.NOTIFY__PUSH__KEY_FILE) return undefined
  const { private_key, public_key } = readPushKey(config.NOTIFY__PUSH__KEY_FILE)
  const hosts = config.NOTIFY__PUSH__HOSTS.map((host) => matcherOf(host.toLowerCase()))
  const allowed = (url: URL): Rule[] => (hosts.some((host) => host(url.hostname.toLowerCase())) ? rulesFor(url) : [])
  const agent = createAgent('a push', allowed)
  const sender = config.NOTIFY__SMTP__FROM?.replace(/^.*<|>.*$/g, '')
  const sub = sender ? `mailto:${sender}` : console_url
  return {
    /** The point of our key, base64url, with which browsers subscribe. */
    public_key,
    /** Whether a browser's pushes may go to this URL, judged by the URL alone. */
    mayCall: (url: URL) => mayReach(allowed(url), url),
    send: async ({ address }: Omit<Reach, 'kind'>, message: Message, at: Date): Promise<Sent> => {
      const { endpoint, ...keys } = JSON.parse(address) as Subscription
      const { topic, urgent, payload } = pushOf(message)
      const exp = Math.floor(at.getTime() / 1000) + TOKEN_S
      const token = signedBy(private_key, { aud: new URL(endpoint).origin, exp, sub })
      const headers = {
        authorization: `vapid t=${token}, k=${public_key}`,
        'content-encoding': 'aes128gcm',
        'content-type': 'application/octet-stream',
        ttl: String(TTL_S),
        urgency: urgent ? 'high' : 'normal',
        // Of several pushes with one topic that wait at the push service, the device gets only the last.
        topic: createHash('sha256').update(topic).digest('base64url').slice(0, 32),
      }
      return post(agent, endpoint, headers, encryptPush(JSON.stringify(payload), keys), [404, 410])
    },
    close: () => agent.close(),
  }
}

const readPushKey = (file: string): { private_key: KeyObject; public_key: string } => {
  const jwk = readJsonFile<JsonWebKey>('NOTIFY__PUSH__KEY_FILE', file)
  try {
    if (jwk.kty !== 'EC' || jwk.crv !== 'P-256') throw new Error('it is not a P-256 key')
    const private_key = createPrivateKey({ key: jwk, format: 'jwk' })
    const { x = '', y = '' } = createPublicKey(private_key).export({ format: 'jwk' })
    const point = [Buffer.from([4]), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')]
    return { private_key, public_key: Buffer.concat(point).toString('base64url') }
  } catch (error) {
    throw new ConfigError(
      `NOTIFY__PUSH__KEY_FILE names ${file}, which is not a private JWK: ${(error as Error).message}`,
    )
  }
}

/** Returns a JSON Web Token signed with ES256. */
const signedBy = (key: KeyObject, claims: object): string => {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const signed = `${part({ typ: 'JWT', alg: 'ES256' })}.${part(claims)}`
  return `${signed}.${sign('sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
}
