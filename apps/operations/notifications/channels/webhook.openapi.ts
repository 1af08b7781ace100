import { WebhookMessage } from '../../../shared/contracts/notifications/messages.ts'
import { exampleOf, type JsonSchema } from '../../../shared/http/example.ts'
import { type Document, type Parameter, spelled } from '../../../shared/http/openapi.ts'

const header = (name: string, example: string, description: string): Parameter => ({
  ...{ in: 'header', name, required: true, description, example },
  schema: { type: 'string' },
})

/** The requests that we send, as their receivers see them. */
export const ownWebhooks = (): NonNullable<Document['webhooks']> => {
  const schema: JsonSchema = spelled<object>(WebhookMessage)
  return {
    notification: {
      post: {
        operationId: 'receiveNotification',
        summary: 'Receive a notification',
        tags: ['notifications'],
        description:
          'Sent to a destination of the kind `webhook`, signed as Standard Webhooks specifies. A message may arrive twice, under one `webhook-id`. Verify the signature with the secret of the destination, and refuse an old `webhook-timestamp`. Redirects are not followed.',
        parameters: [
          header('webhook-id', '0195f0c2-0000-7000-8000-00000000000a', 'Names the message, in each of its tries.'),
          header('webhook-timestamp', '1769860800', 'When this try was made, in Unix seconds.'),
          header(
            'webhook-signature',
            'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=',
            '`v1,` and the base64 HMAC-SHA-256 of `id.timestamp.body`. Two, with a space between, while a previous secret is valid.',
          ),
        ],
        requestBody: {
          required: true,
          content: { 'application/json': { schema, example: exampleOf(schema, () => undefined) } },
        },
        responses: {
          '2XX': { description: 'The message was taken. The body is ignored.' },
          410: { description: 'The destination is disabled: it gets no further message.' },
          default: { description: 'The message is sent again later; `Retry-After` is respected.' },
        },
        security: [],
      },
    },
  }
}
