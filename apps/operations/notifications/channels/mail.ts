import { setTimeout as delay } from 'node:timers/promises'
import { createTransport } from 'nodemailer'
import { ConfigError, readTextFile } from '../../../shared/config.ts'
import type { OperationsConfig } from '../../config.ts'
import type { Message } from '../messages/decisions.ts'
import { type Reach, type Sent, TIMEOUT_MS } from './reach.ts'

const tooLate = () => Promise.reject(Object.assign(new Error('too late'), { code: 'ETIMEDOUT' }))

type MailError = Error & { responseCode?: number; code?: string }

/**
 * Sends mail through the configured server; undefined if there is none. Each answer of the server has its own limit; a
 * message as a whole has `longest_ms`, within its lease, so a server that drips holds no place for ever.
 */
export const createMail = (config: OperationsConfig, longest_ms = 2 * TIMEOUT_MS) => {
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
    send: async ({ delivery_id, address }: Omit<Reach, 'kind'>, { subject, text }: Message): Promise<Sent> => {
      try {
        const sent = transport.sendMail({
          from,
          to: { name: '', address },
          subject: `Signalbox: ${subject}`,
          text,
          messageId: `<${delivery_id}@${domain}>`,
          headers: { 'Auto-Submitted': 'auto-generated', 'X-Auto-Response-Suppress': 'All' },
        })
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
