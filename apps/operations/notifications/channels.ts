import { createHmac } from 'node:crypto'
import { createTransport } from 'nodemailer'
import { type Agent, request } from 'undici'
import type { Destination } from '../../../db/operations/notifications/destinations.ts'
import { ConfigError, readTextFile } from '../../shared/config.ts'
import { createAgent, Denied } from '../../shared/web/agent.ts'
import { fits, PUBLIC, type Rule, ruleOf } from '../../shared/web/egress.ts'
import type { OperationsConfig } from '../config.ts'
import type { Message } from './messages/decisions.ts'
import { bodyOf } from './messages/shapes.ts'

const TIMEOUT_MS = 10_000

/** How a try ended. `final`: it is not tried again; `gone`: nor is anything else sent there. */
export type Sent = { error?: string; final?: true; gone?: true }
/** What is opened of a destination to reach it. */
export type Reach = { delivery_id: string; kind: Destination['kind']; address: string; secret: string | undefined }

export type Channels = {
  console_url: string
  /** Whether there is a mail server. */
  mail: boolean
  /** Whether a webhook may have this URL, as far as it says itself. */
  mayCall: (url: URL) => boolean
  send: (reach: Reach, message: Message, at: Date) => Promise<Sent>
  close: () => Promise<void>
}

/** The ways out of this process; undefined unless NOTIFY__ENABLED. */
export const createChannels = (config: OperationsConfig): Channels | undefined => {
  if (!config.NOTIFY__ENABLED) return undefined
  const console_url = new URL(config.GATEWAY__HTTP__PUBLIC_ORIGIN).origin
  const rules = [PUBLIC, ...config.NOTIFY__EGRESS__ALLOW.map((one) => ruleOf('NOTIFY__EGRESS__ALLOW', one))]
  const rulesFor = (url: URL): Rule[] => rules.filter((rule) => fits(rule, url))
  const agent = createAgent('a notification', rulesFor)
  const mail = createMail(config)
  return {
    console_url,
    mail: mail !== undefined,
    mayCall: (url) => rulesFor(url).length > 0,
    send: async (reach, message, at) => {
      if (reach.kind !== 'email') return call(agent, { ...reach, kind: reach.kind }, message, at)
      return mail ? mail.send(reach, message) : { error: 'There is no mail server.', final: true }
    },
    close: async () => {
      mail?.close()
      await agent.close()
    },
  }
}

type MailError = Error & { responseCode?: number; code?: string }

const createMail = (config: OperationsConfig) => {
  const { NOTIFY__SMTP__HOST: host, NOTIFY__SMTP__PORT: port, NOTIFY__SMTP__TLS: tls } = config
  const { NOTIFY__SMTP__FROM: from, NOTIFY__SMTP__USER: user, NOTIFY__SMTP__PASSWORD_FILE: file } = config
  if (!host) return undefined
  if (!from) throw new ConfigError('NOTIFY__SMTP__FROM is not set: mail needs a sender.')
  const pass = file && readTextFile('NOTIFY__SMTP__PASSWORD_FILE', file)
  const transport = createTransport({
    host,
    port,
    secure: tls === 'implicit',
    requireTLS: tls === 'starttls',
    ignoreTLS: tls === 'none',
    ...(user && { auth: { user, pass: pass ?? '' } }),
    connectionTimeout: TIMEOUT_MS,
    greetingTimeout: TIMEOUT_MS,
    socketTimeout: TIMEOUT_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  const domain = from.replace(/^.*@|>.*$/g, '')
  return {
    close: () => transport.close(),
    send: async ({ delivery_id, address }: Reach, { subject, text }: Message): Promise<Sent> => {
      try {
        await transport.sendMail({
          from,
          to: { name: '', address },
          subject: `Signalbox: ${subject}`,
          text,
          messageId: `<${delivery_id}@${domain}>`,
          headers: { 'Auto-Submitted': 'auto-generated', 'X-Auto-Response-Suppress': 'All' },
        })
        return {}
      } catch (error) {
        const { responseCode, code } = error as MailError
        const words = responseCode
          ? `The mail server answers ${responseCode}.`
          : `No mail server: ${code ?? 'no answer'}.`
        // Of ours alone is the account: an address that is refused stays so.
        return responseCode && responseCode >= 500 && code !== 'EAUTH'
          ? { error: words, final: true }
          : { error: words }
      }
    },
  }
}

/** One POST, signed as Standard Webhooks states it. No redirect is followed, and no answer is kept. */
const call = async (
  agent: Agent,
  { delivery_id, kind, address, secret }: Reach & { kind: Exclude<Reach['kind'], 'email'> },
  message: Message,
  at: Date,
): Promise<Sent> => {
  const timestamp = String(Math.floor(at.getTime() / 1000))
  const body = bodyOf(kind, message, at.toISOString())
  const headers = {
    'content-type': 'application/json',
    'user-agent': 'signalbox',
    'webhook-id': delivery_id,
    'webhook-timestamp': timestamp,
    ...(secret && { 'webhook-signature': signatureOf(secret, `${delivery_id}.${timestamp}.${body}`) }),
  }
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS)
    const answer = await request(address, { method: 'POST', headers, body, dispatcher: agent, signal, reset: true })
    await answer.body.dump({ limit: 65_536 })
    const { statusCode: status } = answer
    if (status >= 200 && status < 300) return {}
    return { error: `It answers ${status}.`, ...(status === 410 && { final: true, gone: true }) }
  } catch (error) {
    if (error instanceof Denied) return { error: 'Its address may not be called.', final: true }
    return { error: (error as Error).name === 'TimeoutError' ? 'It does not answer.' : 'It cannot be reached.' }
  }
}

const signatureOf = (secret: string, signed: string): string => {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  return `v1,${createHmac('sha256', key).update(signed).digest('base64')}`
}
