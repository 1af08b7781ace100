import { randomUUID } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { Parser, type ReadEntry } from 'tar'
import { sha256Hex } from '../../shared/data/digest.ts'
import { whyOf } from '../../shared/errors.ts'
import { isOutage } from '../../shared/process/outage.ts'
import { isRegistry, type Proved, pullLayer, refusalBy } from './registry.ts'
import { PackError, type PackRule } from './source.ts'

/**
 * A place and a digest: `/srv/packs/net-1.2.0.tgz@sha256:…`, a URL, or `oci://registry.example/net@sha256:…`, the digest of
 * a manifest. The digest is trusted, not the place.
 */
export const PACKAGE =
  '^((/|https?://)[^\\s]+\\.tgz|oci(\\+http)?://[^\\s/@]+/[a-z0-9][a-z0-9._/-]*)@sha256:[0-9a-f]{64}$'

const MAX_PACKED = 8 * 1024 * 1024
const MAX_BYTES = 32 * 1024 * 1024
const MAX_ENTRIES = 1000
const FETCH_MS = 30_000
const FILES = new Set(['File', 'OldFile', 'ContiguousFile'])
/** The files of a package that the server reads: packs and their gate policies; tests and sources are for authors. */
const READ = /^(gates\/)?[^/]+\.ya?ml$/

export type Terms = {
  /** The file of `docker login`, for registries that require a login to pull. */
  credentials_file?: string | undefined
  /** Keeps what was fetched, by digest: no later start needs the server of a package that was loaded once. */
  kept?: string | undefined
}

/**
 * Returns folders with the packs of these packages, valid until `close`, and the reasons why others are missing because
 * their server is away. Throws a PackError for one that cannot be trusted or read.
 */
export const openPackages = async (
  pinned: readonly string[],
  terms: Terms = {},
): Promise<{ dirs: string[]; away: string[]; close: () => void }> => {
  const root = mkdtempSync(join(tmpdir(), 'signalbox-packages-'))
  const close = () => rmSync(root, { recursive: true, force: true })
  try {
    const dirs = pinned.map((_, i) => join(root, String(i)))
    const found = await Promise.all(pinned.map((one, i) => openPackage(one, dirs[i] as string, terms)))
    return { dirs: dirs.filter((_, i) => !found[i]), away: found.flatMap((reason) => reason ?? []), close }
  } catch (error) {
    close()
    throw error
  }
}

/** Returns why the package cannot be had now, if another try may help. */
const openPackage = async (pinned: string, dir: string, terms: Terms): Promise<string | undefined> => {
  const at = pinned.lastIndexOf('@sha256:')
  const [place, digest] = [pinned.slice(0, at), pinned.slice(at + '@sha256:'.length)]
  const refuse = (reason: string, rule: PackRule = 'package') => new PackError([{ place, pointer: '', rule, reason }])
  let packed: Buffer
  try {
    packed = await read(place, digest, terms)
  } catch (error) {
    if (error instanceof OtherBytes) throw refuse(error.message)
    const reason = `the package cannot be read: ${whyOf(error)}`
    if (isOutage(error)) return `${place}: ${reason}`
    throw refuse(reason, 'fetch')
  }
  let entries: Entry[]
  try {
    entries = await entriesOf(gunzipSync(packed, { maxOutputLength: MAX_BYTES }))
  } catch (error) {
    throw refuse(`the package is refused: ${(error as Error).message}`)
  }
  mkdirSync(dir)
  for (const { path, bytes } of entries.filter((entry) => READ.test(entry.path))) {
    mkdirSync(dirname(join(dir, path)), { recursive: true })
    writeFileSync(join(dir, path), bytes)
  }
  return undefined
}

class OtherBytes extends Error {}

const read = (place: string, digest: string, { credentials_file, kept }: Terms): Promise<Buffer> => {
  const proved: Proved = async (what, digest, fetch) => {
    const path = kept && !place.startsWith('/') ? join(kept, digest) : undefined
    const had = path && readIfThere(path)
    if (had && sha256Hex(had) === digest) return had
    const bytes = await fetch()
    const found = sha256Hex(bytes)
    if (found !== digest)
      throw new OtherBytes(`${what} has the digest sha256:${found}, not the pinned sha256:${digest}`)
    if (path) keep(path, bytes)
    return bytes
  }
  if (isRegistry(place))
    return pullLayer(place, digest, credentials_file, proved, (answer, most) =>
      limited(answer.body as ReadableStream<Uint8Array>, Math.min(most, MAX_PACKED)),
    )
  return proved('the package', digest, async () => {
    if (place.startsWith('/')) return limited([readFileSync(place)])
    const answer = await fetch(place, { signal: AbortSignal.timeout(FETCH_MS) })
    if (!answer.ok || !answer.body) throw refusalBy(answer.status, `${place} answered ${answer.status}`)
    return limited(answer.body)
  })
}

const readIfThere = (path: string): Buffer | undefined => {
  try {
    return readFileSync(path)
  } catch {
    return undefined
  }
}

const keep = (path: string, bytes: Buffer): void => {
  mkdirSync(dirname(path), { recursive: true })
  const beside = `${path}.${randomUUID()}`
  writeFileSync(beside, bytes)
  renameSync(beside, path)
}

const limited = async (parts: AsyncIterable<Uint8Array> | Iterable<Uint8Array>, most = MAX_PACKED): Promise<Buffer> => {
  const read: Uint8Array[] = []
  let size = 0
  for await (const part of parts) {
    size += part.length
    if (size > most) throw new Error(`it is larger than ${most} bytes`)
    read.push(part)
  }
  return Buffer.concat(read)
}

type Entry = { path: string; bytes: Buffer }

/** Returns all files of an archive below its one folder. Throws for links, devices, and paths that lead out of it. */
const entriesOf = (archive: Buffer): Promise<Entry[]> =>
  new Promise((resolve, reject) => {
    const entries: Entry[] = []
    let count = 0
    const take = (entry: ReadEntry) => {
      count += 1
      const { type, path } = entry
      const parts = path.split('/')
      if (count > MAX_ENTRIES) reject(new Error(`it has more than ${MAX_ENTRIES} entries`))
      else if (path.startsWith('/') || parts.includes('..') || /[\\\0]/.test(path))
        reject(new Error(`the path ${JSON.stringify(path)} leads out of the package`))
      else if (!FILES.has(type) && type !== 'Directory') reject(new Error(`${JSON.stringify(path)} is a ${type}`))
      const chunks: Buffer[] = []
      entry.on('data', (chunk: Buffer) => void chunks.push(chunk))
      entry.on('end', () => {
        if (FILES.has(type)) entries.push({ path: parts.slice(1).join('/'), bytes: Buffer.concat(chunks) })
      })
    }
    const parser = new Parser({ strict: true, onReadEntry: take })
    parser.on('error', reject)
    parser.on('end', () => resolve(entries))
    parser.end(archive)
  })
