import type { MessageItem, WebhookMessage } from '../../../shared/contracts/notifications/messages.ts'
import type { DestinationKind } from '../../../shared/contracts/notifications/notifications.ts'
import { headOf, isStop, type Message } from './decisions.ts'
import { wordsFor } from './words.ts'

export type Webhook = Exclude<DestinationKind, 'email' | 'push'>

/** Returns the body of a message for each kind of webhook. No format reads markup from a title. */
export const bodyOf = (kind: Webhook, message: Message, at: string): string => JSON.stringify(SHAPES[kind](message, at))

const titleOf = (item: MessageItem, language: Message['language']): string => {
  const { words } = item
  const ours = wordsFor({ language })
  if (!words) return isStop(item) ? ours.operation : ours.decision
  return [headOf(item, language), words.question, ours.risk(words.risk)].filter(Boolean).join(' · ')
}

/** Slack treats only these three as the start of markup. */
const escaped = (text: string): string => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;')

/** Slack takes 50 blocks, of 3000 characters each. */
const SLACK_ITEMS = 20
const TEAMS_ITEMS = 20

const SHAPES: Record<Webhook, (message: Message, at: string) => object> = {
  webhook: ({ type, subject, details, items, link }, at): WebhookMessage => ({
    type: type ?? (items.every(isStop) ? 'operations.stopped' : 'decisions.waiting'),
    timestamp: at,
    data: { subject, ...(details && { details }), link, items },
  }),
  slack: ({ subject, language, details, items, link }) => ({
    text: escaped(subject),
    unfurl_links: false,
    blocks: [
      { type: 'header', text: { type: 'plain_text', text: subject } },
      ...(details ? [{ type: 'section', text: { type: 'plain_text', text: details } }] : []),
      ...items.slice(0, SLACK_ITEMS).flatMap((item) => [
        { type: 'section', text: { type: 'plain_text', text: titleOf(item, language) } },
        { type: 'context', elements: [{ type: 'mrkdwn', text: `<${item.link}|${wordsFor({ language }).open}>` }] },
      ]),
      { type: 'context', elements: [{ type: 'mrkdwn', text: `<${link}|Signalbox>` }] },
    ],
  }),
  teams: ({ subject, language, details, items, link }) => ({
    type: 'message',
    attachments: [
      {
        contentType: 'application/vnd.microsoft.card.adaptive',
        contentUrl: null,
        content: {
          $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
          type: 'AdaptiveCard',
          version: '1.4',
          body: [
            richText(subject, { weight: 'Bolder' }),
            ...(details?.split('\n') ?? []).map((line) => richText(line, {})),
            ...items
              .slice(0, TEAMS_ITEMS)
              .map((item) =>
                richText(titleOf(item, language), { selectAction: { type: 'Action.OpenUrl', url: item.link } }),
              ),
          ],
          actions: [{ type: 'Action.OpenUrl', title: wordsFor({ language }).open, url: link }],
        },
      },
    ],
  }),
}

/** A RichTextBlock, because a TextBlock would read Markdown. */
const richText = (text: string, style: object) => ({
  type: 'RichTextBlock',
  inlines: [{ type: 'TextRun', text, ...style }],
})
