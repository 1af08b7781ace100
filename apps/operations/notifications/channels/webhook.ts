import { createHmac } from 'node:crypto'
import type { Agent } from 'undici'
import type { Message } from '../messages/decisions.ts'
import { bodyOf, type Webhook } from '../messages/shapes.ts'
import { post, type Reach, type Sent } from './reach.ts'

/** Sends one POST, signed as Standard Webhooks specifies. */
export const callWebhook = async (
  agent: Agent,
  { delivery_id, kind, address, secret }: Reach & { kind: Webhook },
  message: Message,
  at: Date,
): Promise<Sent> => {
  const timestamp = String(Math.floor(at.getTime() / 1000))
  const body = bodyOf(kind, message, at.toISOString())
  const headers = {
    'content-type': 'application/json',
    'webhook-id': delivery_id,
    'webhook-timestamp': timestamp,
    ...(secret && { 'webhook-signature': signatureOf(secret, `${delivery_id}.${timestamp}.${body}`) }),
  }
  return post(agent, address, headers, body, [410])
}

const signatureOf = (secret: string, signed: string): string => {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  return `v1,${createHmac('sha256', key).update(signed).digest('base64')}`
}
