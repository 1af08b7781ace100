import type { Decided, Waiting } from '../../../../db/operations/notifications/waiting.ts'
import type { MessageItem } from '../../../shared/contracts/notifications/messages.ts'
import type { NotifyEvent, SecurityEvent } from '../../../shared/contracts/notifications/notifications.ts'

/** A message before its channel shapes it: plain words and one link each, no markup. */
export type Message = {
  /** The type that a webhook is given if the message is about an account, or a test. */
  type: 'test' | SecurityEvent | undefined
  subject: string
  /** The outcome of its one decision or hold: it replaces the notification about it. */
  outcome?: string
  items: MessageItem[]
  text: string
  /** What an event of an account was about, for channels without room for the whole text. */
  details?: string
  /** The part of it that a locked screen may show: no address. */
  about?: string
  link: string
}
export type Told = Waiting & { event: NotifyEvent }

/** Whether it is about an operation that stopped, which asks for no decision. */
export const isStop = ({ event }: { event: NotifyEvent }): boolean => event.startsWith('operation.')

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

/** Links to its page. The page requires a sign-in, and opening it decides no gate. */
const linkOf = (console_url: string, { operation_id, object, round }: Told): string => {
  const { gate_id, patch_id } = idsOf(object)
  const page = `${console_url}/operations/${operation_id}`
  if (gate_id !== null) return `${page}/gates/${encodeURIComponent(gate_id)}?round=${round}`
  return patch_id === null ? page : `${page}/patches/${patch_id}`
}

export type Style = { console_url: string; content: 'titles' | 'minimal' }

/** One message for all of these, without tokens or secrets: only ids, links, and words that readers may see. */
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
  const subject = subjectOf(items)
  const all = `${console_url}${items.every(isStop) ? '/operations' : '/inbox?for=me'}`
  const shown = items.slice(0, SHOWN).map(wordsOf)
  const rest = items.length > SHOWN ? [`And ${items.length - SHOWN} more: ${all}`] : []
  return {
    type: undefined,
    subject,
    items,
    text: [subject, ...shown, ...rest].join('\n\n'),
    link: items.length === 1 ? (items[0]?.link ?? '') : all,
  }
}

const subjectOf = (items: readonly MessageItem[]): string => {
  const stops = items.filter(isStop)
  const [stop] = stops
  const asked = items.length - stops.length
  const decisions = asked === 1 ? 'A decision is waiting for you.' : `${asked} decisions are waiting for you.`
  const one = stop?.event === 'operation.held' ? 'A failure holds up an operation.' : 'An operation failed.'
  const stopped = stops.length === 1 ? one : `${stops.length} operations failed or are held up by a failure.`
  return [...(asked > 0 ? [decisions] : []), ...(stop ? [stopped] : [])].join(' ')
}

const VERDICTS: Record<string, string> = { approved: 'Approved', rejected: 'Rejected', expired: 'Expired' }

/** Says that a decision or a hold is over, and why; without words for a reader who may no longer read it. */
export const outcomeMessage = (decided: Decided, { console_url, content }: Style, readable: boolean): Message => {
  const { items, link } = decisionsMessage([decided], { console_url, content: readable ? content : 'minimal' })
  const over = isStop(decided) ? 'An operation is no longer held up.' : 'A decision is no longer waiting for you.'
  const verdict = VERDICTS[decided.status]
  const by = verdict && decided.decided_by?.kind === 'user' ? ` by ${line(decided.decided_by.name)}` : ''
  const outcome = verdict && readable && content === 'titles' ? `${verdict}${by}.` : over
  return { type: undefined, subject: outcome, outcome, items, text: outcome, link }
}

const ABOUT: Record<NotifyEvent, string> = {
  'gate.waiting': '',
  'gate.reopened': ' (asked again)',
  'gate.escalated': ' (escalated)',
  'patch.waiting': ' (a patch)',
  'operation.held': ' (held up by a failure)',
  'operation.failed': ' (failed)',
}

/** Its title and its event in words; `undefined` in minimal messages. */
export const headOf = ({ event, words }: MessageItem): string | undefined => words && `${words.title}${ABOUT[event]}`

const wordsOf = (item: MessageItem): string => {
  const { words, link } = item
  if (!words) return link
  const { question, risk, deadline_at } = words
  const until = deadline_at ? `, until ${deadline_at.slice(0, 16).replace('T', ' ')} UTC` : ''
  return [headOf(item), ...(question ? [question] : []), `Risk: ${risk}${until}`, link].join('\n')
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
