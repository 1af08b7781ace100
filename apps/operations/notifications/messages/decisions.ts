import type { Decided, Waiting } from '../../../../db/operations/notifications/waiting.ts'
import type { NotifyEvent, SecurityEvent } from '../../../shared/contracts/notifications/notifications.ts'

/** A message before its channel shapes it: plain words and one link each, no markup. */
export type Message = {
  /** The type that a webhook is given if the message is not about decisions. */
  type: 'test' | SecurityEvent | undefined
  subject: string
  /** The outcome of its one decision: it replaces the notification that asked for the decision. */
  outcome?: string
  /** Ids, words and a link for each decision, to be read by programs. */
  items: MessageItem[]
  text: string
  /** What an event of an account was about, for channels without room for the whole text. */
  details?: string
  /** The part of it that a locked screen may show: no address. */
  about?: string
  link: string
}
export type MessageItem = {
  event: NotifyEvent
  operation_id: string
  gate_id: string | null
  patch_id: string | null
  round: number
  escalation: number
  /** Absent in minimal messages. */
  words?: { title: string; question: string | null; risk: string; deadline_at: string | null }
  link: string
}
export type Told = Waiting & { event: NotifyEvent }

const SHOWN = 20
const MOST_WORDS = 300

/** Returns one line, so that no line of a title can look like one of our lines. */
export const line = (text: string): string =>
  text
    .replace(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ')
    .trim()
    .slice(0, MOST_WORDS)

export const idsOf = (object: string) => {
  const [kind, id = ''] = [object.slice(0, object.indexOf(':')), object.slice(object.indexOf(':') + 1)]
  return { gate_id: kind === 'gate' ? id : null, patch_id: kind === 'patch' ? id : null }
}

/** Links to the page of a decision. The page requires a sign-in, and opening it decides no gate. */
const linkOf = (console_url: string, { operation_id, object, round }: Told): string => {
  const { gate_id, patch_id } = idsOf(object)
  const path = gate_id === null ? `patches/${patch_id}` : `gates/${encodeURIComponent(gate_id)}?round=${round}`
  return `${console_url}/operations/${operation_id}/${path}`
}

export type Style = { console_url: string; content: 'titles' | 'minimal' }

/** One message for all these decisions, without tokens or secrets: only ids, links, and words that readers may see. */
export const decisionsMessage = (told: readonly Told[], { console_url, content }: Style): Message => {
  const items = told.map((one): MessageItem => {
    const { event, operation_id, round, escalation, title, question, risk_level, deadline_at } = one
    const words = { title: line(title), question: question && line(question), risk: risk_level, deadline_at }
    return {
      ...{ event, operation_id, ...idsOf(one.object), round, escalation },
      ...(content === 'titles' && { words }),
      link: linkOf(console_url, one),
    }
  })
  const subject = told.length === 1 ? 'A decision is waiting for you.' : `${told.length} decisions are waiting for you.`
  const shown = items.slice(0, SHOWN).map(wordsOf)
  const rest = items.length > SHOWN ? [`And ${items.length - SHOWN} more: ${console_url}/inbox?for=me`] : []
  return {
    type: undefined,
    subject,
    items,
    text: [subject, ...shown, ...rest].join('\n\n'),
    link: items.length === 1 ? (items[0]?.link ?? '') : `${console_url}/inbox?for=me`,
  }
}

const VERDICTS: Record<string, string> = { approved: 'Approved', rejected: 'Rejected', expired: 'Expired' }

/** Says that a decision no longer waits, and why; without words for a reader who may no longer read it. */
export const outcomeMessage = (decided: Decided, { console_url, content }: Style, readable: boolean): Message => {
  const { items, link } = decisionsMessage([{ ...decided, event: 'gate.waiting' }], {
    console_url,
    content: readable ? content : 'minimal',
  })
  const verdict = VERDICTS[decided.status]
  const by = verdict && decided.decided_by?.kind === 'user' ? ` by ${line(decided.decided_by.name)}` : ''
  const outcome =
    verdict && readable && content === 'titles' ? `${verdict}${by}.` : 'A decision is no longer waiting for you.'
  return { type: undefined, subject: outcome, outcome, items, text: outcome, link }
}

const ABOUT: Record<NotifyEvent, string> = {
  'gate.waiting': '',
  'gate.reopened': ' (asked again)',
  'gate.escalated': ' (escalated)',
  'patch.waiting': ' (a patch)',
}

const wordsOf = ({ event, words, link }: MessageItem): string => {
  if (!words) return link
  const { title, question, risk, deadline_at } = words
  const until = deadline_at ? `, until ${deadline_at.slice(0, 16).replace('T', ' ')} UTC` : ''
  return [`${title}${ABOUT[event]}`, ...(question ? [question] : []), `Risk: ${risk}${until}`, link].join('\n')
}

/** A message that asks for no decision. */
export const plain = (subject: string, text: string, link: string, type: Message['type'] = 'test'): Message => ({
  ...{ type, subject, items: [], text, link },
})

export const codeMessage = (code: string, console_url: string): Message =>
  plain(
    'Confirm this address',
    `Someone asked Signalbox to notify this address when a decision is waiting for them. If it was you, confirm the address with this code:\n\n${code}\n\nIf not, ignore this message: no further one follows.`,
    console_url,
  )

export const testMessage = (console_url: string): Message =>
  plain('A test', `This is a test: Signalbox can reach you at this address.\n\n${console_url}`, console_url)
