import { createHmac } from 'node:crypto'
import type { Agent } from 'undici'
import type { Message } from '../messages/decisions.ts'
import { bodyOf, type Webhook } from '../messages/shapes.ts'
import { post, type Reach, type Sent } from './reach.ts'

/** Sends one POST, signed with each secret as Standard Webhooks specifies. */
export const callWebhook = async (
  agent: Agent,
  { delivery_id, kind, address, secrets }: Reach & { kind: Webhook },
  message: Message,
  at: Date,
): Promise<Sent> => {
  const timestamp = String(Math.floor(at.getTime() / 1000))
  const body = bodyOf(kind, message, at.toISOString())
  const sign = (secret: string) => signatureOf(secret, `${delivery_id}.${timestamp}.${body}`)
  const headers = {
    'content-type': 'application/json',
    'webhook-id': delivery_id,
    'webhook-timestamp': timestamp,
    ...(secrets.length > 0 && { 'webhook-signature': secrets.map(sign).join(' ') }),
  }
  return post(agent, address, headers, body, [410])
}

const signatureOf = (secret: string, signed: string): string => {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  return `v1,${createHmac('sha256', key).update(signed).digest('base64')}`
}
