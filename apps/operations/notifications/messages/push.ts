import type { Message } from './decisions.ts'
import { wordsFor } from './words.ts'

/** A device's notification. It replaces one with its tag, which a gate's rounds share. `silent`: without a sound. */
export type PushPayload = { tag: string; title: string; body: string; url: string; silent: boolean }

const URGENT: ReadonlySet<string> = new Set(['high', 'critical'])

/** Returns a message's push, and the topic under which it replaces an undelivered one. */
export const pushOf = (message: Message): { topic: string; urgent: boolean; payload: PushPayload } => {
  const { items, subject, about: said = '', link, outcome } = message
  const [item] = items
  const url = new URL(link)
  const shown = { url: `${url.pathname}${url.search}`, silent: outcome !== undefined }
  if (!item || items.length > 1) {
    // Different events of an account are shown together; a repeat replaces its first.
    const tag = message.type ? `${message.type} ${said}`.trim() : 'inbox'
    return { topic: tag, urgent: item !== undefined, payload: { tag, title: subject, body: said, ...shown } }
  }
  const { operation_id, gate_id, patch_id, round, words } = item
  const tag = `${operation_id}/${gate_id ?? patch_id ?? 'operation'}`
  const about = words ? [words.title, ...(outcome ? [] : [wordsFor(message).risk(words.risk)])].join(' · ') : ''
  return {
    topic: `${tag}/${round}`,
    urgent: URGENT.has(words?.risk ?? ''),
    payload: {
      tag,
      title: outcome ?? words?.question ?? subject,
      body: outcome ? [words?.question, about].filter(Boolean).join('\n') : about,
      ...shown,
    },
  }
}
