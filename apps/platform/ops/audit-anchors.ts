import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, parse } from 'node:path'
import { type Anchor, readAnchor } from '../../../db/audit.anchors.ts'
import { connectNats } from '../../shared/events/events.ts'
import { readStream } from '../../shared/events/read.ts'
import { type PrivateKey, readKeyFile } from '../../shared/service/keys.ts'
import { settingOf } from './access.ts'

/** Anchors of one place; its first entry that lacks the relay's signature, and those that a crash or full disk cut off. */
export type Anchors = {
  place: string
  lines: string[]
  anchors: Anchor[]
  torn: string[]
  forged?: string
  /** A file that is not there: not one without anchors. */
  missing?: boolean
}

/** The key of the relay, and earlier ones that a rotation left beside it as `audit.<time>.json`. */
const anchorKeys = (): PrivateKey[] => {
  const file = settingOf('relay', 'AUDIT__KEY_FILE')
  const { dir, name } = parse(file)
  const earlier = readdirSync(dir).filter((one) => new RegExp(`^${name}\\.\\d+\\.json$`).test(one))
  return [file, ...earlier.map((one) => join(dir, one))].map((one) => readKeyFile('RELAY__AUDIT__KEY_FILE', one))
}

const read = (place: string, lines: string[], nameOf: (n: number) => string): Anchors => {
  const keys = anchorKeys()
  const found: Anchors = { place, lines: [], anchors: [], torn: [] }
  for (const [i, line] of lines.entries()) {
    const anchor = keys.map((key) => readAnchor(line, key)).find(Boolean)
    if (anchor) {
      found.lines.push(line)
      found.anchors.push(anchor)
    } else if (isJson(line)) return { ...found, forged: nameOf(i + 1) }
    else found.torn.push(nameOf(i + 1))
  }
  return found
}

const isJson = (line: string): boolean => {
  try {
    JSON.parse(line)
    return true
  } catch {
    return false
  }
}

export const anchorsOfFile = (): Anchors => {
  const file = settingOf('relay', 'AUDIT__ANCHOR_FILE')
  if (!existsSync(file)) return { place: file, lines: [], anchors: [], torn: [], missing: true }
  const text = readFileSync(file, 'utf8').trimEnd()
  return read(file, text === '' ? [] : text.split('\n'), (n) => `${file}, line ${n}`)
}

/** Copies of the anchors in stream AUDIT, to which only the relay may publish. Throws if NATS does not answer. */
export const anchorsOfStream = async (): Promise<Anchors> => {
  const nc = await connectNats(settingOf('relay', 'NATS__URL'), 'ops')
  try {
    const lines: string[] = []
    const where = { stream: 'AUDIT', subject: 'audit.anchor' } as const
    for await (const message of readStream(nc, process.env.SIGNALBOX__NATS__PREFIX ?? '', where))
      lines.push(message.string())
    return read('stream AUDIT', lines, (n) => `stream AUDIT, anchor ${n}`)
  } finally {
    await nc.close()
  }
}

/** The anchors of all places, each once. */
export const distinct = (places: readonly Anchors[]): Anchor[] => [
  ...new Map(
    places.flatMap(({ lines, anchors }) => lines.map((line, i) => [line, anchors[i] as Anchor] as const)),
  ).values(),
]
