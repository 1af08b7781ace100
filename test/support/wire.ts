import type { Link } from './link.ts'

/** A conversation with Postgres: its statements, and how often the client waited before it sent the next one. */
export type Cost = { trips: number; statements: string[] }

type Talk = { unread: Buffer; open: number; prepared: Map<string, string>; bound: string }

/** Whole messages of the protocol, each with its type and its content; an incomplete one stays in `unread`. */
function* messages(talk: { unread: Buffer }, bytes: Buffer): Generator<[type: string, content: Buffer]> {
  talk.unread = Buffer.concat([talk.unread, bytes])
  while (talk.unread.length >= 5) {
    const end = 1 + talk.unread.readInt32BE(1)
    if (talk.unread.length < end) return
    const message = talk.unread.subarray(0, end)
    talk.unread = talk.unread.subarray(end)
    yield [String.fromCharCode(message[0] ?? 0), message.subarray(5)]
  }
}

const NONE = Buffer.alloc(0)
const talkOf = (): Talk => ({ unread: NONE, open: 0, prepared: new Map(), bound: '' })

const textsIn = (content: Buffer): string[] => content.toString().split('\0')

/**
 * Counts the statements and round trips that pass a link to Postgres. A statement that is sent while an answer is
 * awaited costs no extra trip.
 */
export const watchWire = (link: Link, ignore: RegExp) => {
  const talks = new WeakMap<object, { sent: Talk; answered: { unread: Buffer } }>()
  let cost: Cost = { trips: 0, statements: [] }
  const run = (text: string) => {
    if (!ignore.test(text)) cost.statements.push(text.replaceAll(/\s+/g, ' '))
  }
  const send = (talk: Talk, type: string, content: Buffer) => {
    const [first = '', second = ''] = textsIn(content)
    if (type === 'P') talk.prepared.set(first, second)
    if (type === 'B') talk.bound = talk.prepared.get(second) ?? `prepared ${second}`
    if (type === 'E') run(talk.bound)
    if (type === 'Q') run(first)
    const text = type === 'Q' ? first : talk.bound
    if (type !== 'Q' && type !== 'S') return
    if (talk.open === 0 && !ignore.test(text)) cost.trips += 1
    talk.open += 1
  }
  link.watch((connection, direction, bytes) => {
    const talk = talks.get(connection) ?? { sent: talkOf(), answered: { unread: NONE } }
    if (!talks.has(connection)) {
      talks.set(connection, talk)
      // The first message of a connection has no type: everything sent before the first answer is its beginning.
      if (bytes[0] === 0) {
        talk.sent.open = 1
        return
      }
    }
    if (direction === 'sent') for (const [type, content] of messages(talk.sent, bytes)) send(talk.sent, type, content)
    else for (const [type] of messages(talk.answered, bytes)) if (type === 'Z') talk.sent.open -= 1
  })
  return {
    during: async (work: () => Promise<unknown>): Promise<Cost> => {
      cost = { trips: 0, statements: [] }
      await work()
      return cost
    },
  }
}
