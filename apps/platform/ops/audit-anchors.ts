import { existsSync, readFileSync } from 'node:fs'
import { DeliverPolicy, type NatsConnection } from 'nats'
import { type Anchor, readAnchor } from '../../../db/audit.anchors.ts'
import { connectNats, prefixed, streamName } from '../../shared/events/events.ts'
import { readKeyFile } from '../../shared/service/keys.ts'
import { settingOf } from './access.ts'

/** Anchors of one place, and what stands there without the relay's signature. */
export type Anchors = { place: string; lines: string[]; anchors: Anchor[]; forged?: string }

const read = (place: string, lines: string[], nameOf: (n: number) => string): Anchors => {
  const key = readKeyFile('RELAY__AUDIT__KEY_FILE', settingOf('relay', 'AUDIT__KEY_FILE'))
  const anchors: Anchor[] = []
  for (const [i, line] of lines.entries()) {
    const anchor = readAnchor(line, key)
    if (!anchor) return { place, lines: lines.slice(0, i), anchors, forged: nameOf(i + 1) }
    anchors.push(anchor)
  }
  return { place, lines, anchors }
}

/** The anchors of the relay's file. */
export const anchorsOfFile = (): Anchors => {
  const file = settingOf('relay', 'AUDIT__ANCHOR_FILE')
  const text = existsSync(file) ? readFileSync(file, 'utf8').trimEnd() : ''
  return read(file, text === '' ? [] : text.split('\n'), (n) => `${file}, line ${n}`)
}

/** Their copies in stream AUDIT, which no one but the relay may publish to. Throws when NATS does not answer. */
export const anchorsOfStream = async (): Promise<Anchors> => {
  const nc = await connectNats(settingOf('relay', 'NATS__URL'), 'ops')
  try {
    const lines = await linesOf(nc, process.env.SIGNALBOX__NATS__PREFIX ?? '')
    return read('stream AUDIT', lines, (n) => `stream AUDIT, anchor ${n}`)
  } finally {
    await nc.close()
  }
}

const NO_STREAM = 10_059
const WAIT_MS = 5000

const linesOf = async (nc: NatsConnection, prefix: string): Promise<string[]> => {
  const name = streamName(prefix, 'AUDIT')
  try {
    const consumer = await nc.jetstream().consumers.get(name, {
      filterSubjects: [prefixed(prefix, 'audit.anchor')],
      deliver_policy: DeliverPolicy.All,
    })
    const lines: string[] = []
    let pending = (await consumer.info(true)).num_pending
    while (pending > 0)
      for await (const message of await consumer.fetch({ max_messages: Math.min(pending, 500), expires: WAIT_MS })) {
        lines.push(message.string())
        pending -= 1
      }
    return lines
  } catch (error) {
    // Nothing has been anchored there yet.
    if ((error as { api_error?: { err_code?: number } }).api_error?.err_code === NO_STREAM) return []
    throw error
  }
}
