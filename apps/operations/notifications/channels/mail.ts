import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { createTransport, type SendMailOptions } from 'nodemailer'
import { ConfigError, readTextFile } from '../../../shared/config.ts'
import type { OperationsConfig } from '../../config.ts'
import type { Message } from '../messages/decisions.ts'
import { type Reach, type Sent, TIMEOUT_MS } from './reach.ts'

const tooLate = () => Promise.reject(Object.assign(new Error('too late'), { code: 'ETIMEDOUT' }))

type MailError = Error & { responseCode?: number; code?: string }

/**
 * Sends mail through the configured server, or to the folder of a development platform; undefined if there is neither.
 * Each answer of the server has its own limit; a message as a whole has `longest_ms`, within its lease, so a server that
 * drips holds no place for ever.
 */
export const createMail = (config: OperationsConfig, longest_ms = 2 * TIMEOUT_MS) => {
  const { NOTIFY__SMTP__HOST: host, NOTIFY__SMTP__PORT: port, NOTIFY__SMTP__TLS: tls } = config
  const { NOTIFY__SMTP__FROM: from, NOTIFY__SMTP__USER: user, NOTIFY__SMTP__PASSWORD_FILE: file } = config
  if (!host) return config.NOTIFY__MAIL__DIR ? createMailbox(config.NOTIFY__MAIL__DIR) : undefined
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
  return {
    close: () => transport.close(),
    send: async (reach: Omit<Reach, 'kind'>, message: Message): Promise<Sent> => {
      try {
        const sent = transport.sendMail(mailOf(from, reach, message))
        await Promise.race([sent, delay(longest_ms, undefined, { ref: false }).then(tooLate)])
        return {}
      } catch (error) {
        const { responseCode, code } = error as MailError
        const words = responseCode
          ? `The mail server answered ${responseCode}.`
          : `The mail server cannot be reached: ${code ?? 'no answer'}.`
        // Only the account (EAUTH) is our fault; a refused address stays refused.
        return responseCode && responseCode >= 500 && code !== 'EAUTH'
          ? { error: words, final: true }
          : { error: words }
      }
    },
  }
}

const mailOf = (
  from: string,
  { delivery_id, address }: Omit<Reach, 'kind'>,
  { subject, text }: Message,
): SendMailOptions => ({
  from,
  to: { name: '', address },
  subject: `Signalbox: ${subject}`,
  text,
  messageId: `<${delivery_id}@${from.replace(/^.*@|>.*$/g, '')}>`,
  headers: { 'Auto-Submitted': 'auto-generated', 'X-Auto-Response-Suppress': 'All' },
})

/** Development without a mail server: each message becomes a file, so that a person can read its code or notice. */
const createMailbox = (dir: string) => {
  const transport = createTransport({ streamTransport: true, buffer: true })
  return {
    close: () => transport.close(),
    send: async (reach: Omit<Reach, 'kind'>, message: Message): Promise<Sent> => {
      const { message: bytes } = await transport.sendMail(mailOf('signalbox@localhost', reach, message))
      await mkdir(dir, { recursive: true, mode: 0o700 })
      await writeFile(join(dir, `${reach.delivery_id}.eml`), bytes, { mode: 0o600 })
      return {}
    },
  }
}
