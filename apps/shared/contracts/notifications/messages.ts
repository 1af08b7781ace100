import Type, { type Static } from 'typebox'
import { Nullable, NullableText, Time } from '../operations/common.ts'
import { text } from '../shapes.ts'
import { Notice, SECURITY_EVENTS } from './notifications.ts'

/** The messages that a destination of the kind `webhook` receives. Slack and Teams get the shapes of their own APIs. */
const LINK = 'https://signalbox.example.com/operations/0195f0c2-0000-7000-8000-000000000001/gates/go?round=1'

/** Ids, words and a link for one decision or operation, to be read by programs. */
export const MessageItem = Type.Object({
  ...Notice.properties,
  gate_id: Nullable(text('go')),
  words: Type.Optional(
    Type.Object(
      {
        title: text('web 2.4.0 on eu1'),
        question: NullableText,
        risk: text('high', { description: 'low, medium, high or critical.' }),
        deadline_at: Nullable(Time),
      },
      { description: 'Absent if the installation sends minimal messages.' },
    ),
  ),
  link: text(LINK, { description: 'Its page, which requires a sign-in. Opening it decides no gate.' }),
})
export type MessageItem = Static<typeof MessageItem>

export const WebhookMessage = Type.Object(
  {
    type: Type.Enum(['decisions.waiting', 'operations.stopped', 'test', ...SECURITY_EVENTS], {
      description:
        '`decisions.waiting`: some of `items` wait for a decision. `operations.stopped`: all of them are operations that failed or that a failure holds up. The others but `test` are events of an account. Later releases may add types.',
    }),
    timestamp: text('2026-01-31T12:00:00.000Z', { format: 'date-time', description: 'When this try was made.' }),
    data: Type.Object({
      subject: text('A decision is waiting for you.', { description: 'The message in one sentence.' }),
      details: Type.Optional(
        Type.String({ description: 'Of an event of an account: time, address and client, a line each.' }),
      ),
      link: text(LINK, { description: 'The page of the console for all of it.' }),
      items: Type.Array(MessageItem, { description: 'Empty for an event of an account, and for `test`.' }),
    }),
  },
  {
    description: 'One message, in the shape of Standard Webhooks. Later releases may add members.',
    examples: [
      {
        type: 'decisions.waiting',
        timestamp: '2026-01-31T12:00:00.000Z',
        data: {
          subject: 'A decision is waiting for you.',
          link: LINK,
          items: [
            {
              event: 'gate.waiting',
              operation_id: '0195f0c2-0000-7000-8000-000000000001',
              gate_id: 'go',
              patch_id: null,
              round: 1,
              escalation: 0,
              words: {
                title: 'web 2.4.0 on eu1',
                question: 'The canary is healthy. Continue?',
                risk: 'high',
                deadline_at: '2026-01-31T18:00:00.000000Z',
              },
              link: LINK,
            },
          ],
        },
      },
    ],
  },
)
export type WebhookMessage = Static<typeof WebhookMessage>
