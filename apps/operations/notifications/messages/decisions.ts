import type { Decided, Waiting } from '../../../../db/operations/notifications/waiting.ts'
import type { MessageItem } from '../../../shared/contracts/notifications/messages.ts'
import type { NotifyEvent, SecurityEvent } from '../../../shared/contracts/notifications/notifications.ts'
import { ANYONE, type Reader, timeFor, wordsFor } from './words.ts'

/** A message before its channel shapes it: plain words and one link each, no markup. */
export type Message = {
  /** The type that a webhook is given if the message is about an account, or a test. */
  type: 'test' | SecurityEvent | undefined
  subject: string
  /** The reader's, for words that the channel adds. */
  language: Reader['language']
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

export type Style = { console_url: string; content: 'titles' | 'minimal'; reader?: Reader }

/** One message for all of these, without tokens or secrets: only ids, links, and words that readers may see. */
export const decisionsMessage = (told: readonly Told[], style: Style): Message => {
  const { console_url, content, reader = ANYONE } = style
  const words = wordsFor(reader)
  const items = told.map((one): MessageItem => {
    const { event, operation_id, round, escalation, title, question, risk_level, deadline_at } = one
    const said = { title: line(title), question: question && line(question), risk: risk_level, deadline_at }
    return {
      ...{ event, operation_id, ...idsOf(one.object), round, escalation },
      ...(content === 'titles' && { words: said }),
      link: linkOf(console_url, one),
    }
  })
  const subject = subjectOf(items, words)
  const all = `${console_url}${items.every(isStop) ? '/operations' : '/inbox?for=me'}`
  const shown = items.slice(0, SHOWN).map((item) => wordsOf(item, reader))
  const rest = items.length > SHOWN ? [words.more(items.length - SHOWN, all)] : []
  return {
    type: undefined,
    subject,
    language: reader.language,
    items,
    text: [subject, ...shown, ...rest].join('\n\n'),
    link: items.length === 1 ? (items[0]?.link ?? '') : all,
  }
}

const subjectOf = (items: readonly MessageItem[], words: ReturnType<typeof wordsFor>): string => {
  const stops = items.filter(isStop)
  const [stop] = stops
  const asked = items.length - stops.length
  const one = stop?.event === 'operation.held' ? words.held : words.failed
  const stopped = stops.length === 1 ? one : words.stops(stops.length)
  return [...(asked > 0 ? [words.decisions(asked)] : []), ...(stop ? [stopped] : [])].join(' ')
}

/** Says that a decision or a hold is over, and why; without words for a reader who may no longer read it. */
export const outcomeMessage = (decided: Decided, style: Style, readable: boolean): Message => {
  const { content, reader = ANYONE } = style
  const words = wordsFor(reader)
  const message = decisionsMessage([decided], { ...style, content: readable ? content : 'minimal' })
  const over = isStop(decided) ? words.no_longer_held : words.no_longer_waiting
  const verdict = words.verdicts[decided.status]
  const by = verdict && decided.decided_by?.kind === 'user' ? words.by(line(decided.decided_by.name)) : ''
  const outcome = verdict && readable && content === 'titles' ? `${verdict}${by}.` : over
  return { ...message, subject: outcome, outcome, text: outcome }
}

/** Its title and its event in words; `undefined` in minimal messages. */
export const headOf = ({ event, words }: MessageItem, language: Reader['language']): string | undefined =>
  words && `${words.title}${wordsFor({ language }).about[event]}`

const wordsOf = (item: MessageItem, reader: Reader): string => {
  const { words, link } = item
  const ours = wordsFor(reader)
  if (!words) return link
  const { question, risk, deadline_at } = words
  const until = deadline_at ? ours.until(timeFor(reader, deadline_at)) : ''
  return [headOf(item, reader.language), ...(question ? [question] : []), `${ours.risk(risk)}${until}`, link].join('\n')
}

/** A message that asks for no decision. */
export const plain = (
  subject: string,
  text: string,
  link: string,
  { language }: Reader,
  type: Message['type'] = 'test',
): Message => ({ type, subject, language, items: [], text, link })

export const codeMessage = (code: string, { console_url, reader = ANYONE }: Style): Message => {
  const words = wordsFor(reader)
  return plain(words.code_subject, words.code(code), console_url, reader)
}

export const testMessage = ({ console_url, reader = ANYONE }: Style): Message => {
  const words = wordsFor(reader)
  return plain(words.test_subject, words.test(console_url), console_url, reader)
}
