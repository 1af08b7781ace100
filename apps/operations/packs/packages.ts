import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { Parser, type ReadEntry } from 'tar'
import { sha256Hex } from '../../shared/data/digest.ts'
import { whyOf } from '../../shared/errors.ts'
import { isRegistry, pullLayer } from './registry.ts'
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

/**
 * Returns folders with the packs of these packages, valid until `close`. Throws a PackError for one that cannot be
 * trusted or read. `credentials_file` is that of `docker login`, for registries that require a login to pull.
 */
export const openPackages = async (
  pinned: readonly string[],
  credentials_file?: string,
): Promise<{ dirs: string[]; close: () => void }> => {
  const root = mkdtempSync(join(tmpdir(), 'signalbox-packages-'))
  const close = () => rmSync(root, { recursive: true, force: true })
  try {
    const dirs: string[] = []
    for (const [i, one] of pinned.entries()) {
      const dir = join(root, String(i))
      mkdirSync(dir)
      await openPackage(one, dir, credentials_file)
      dirs.push(dir)
    }
    return { dirs, close }
  } catch (error) {
    close()
    throw error
  }
}

const openPackage = async (pinned: string, dir: string, credentials_file: string | undefined): Promise<void> => {
  const at = pinned.lastIndexOf('@sha256:')
  const [place, digest] = [pinned.slice(0, at), pinned.slice(at + '@sha256:'.length)]
  const refuse = (reason: string, rule: PackRule = 'package') => new PackError([{ place, pointer: '', rule, reason }])
  const packed = await read(place, digest, credentials_file).catch((error: unknown) => {
    throw refuse(`the package cannot be read: ${whyOf(error)}`, 'fetch')
  })
  const found = sha256Hex(packed)
  if (!isRegistry(place) && found !== digest)
    throw refuse(`the package has the digest sha256:${found}, not the pinned sha256:${digest}`)
  let entries: Entry[]
  try {
    entries = await entriesOf(gunzipSync(packed, { maxOutputLength: MAX_BYTES }))
  } catch (error) {
    throw refuse(`the package is refused: ${(error as Error).message}`)
  }
  for (const { path, bytes } of entries.filter((entry) => READ.test(entry.path))) {
    mkdirSync(dirname(join(dir, path)), { recursive: true })
    writeFileSync(join(dir, path), bytes)
  }
}

const read = async (place: string, digest: string, credentials_file: string | undefined): Promise<Buffer> => {
  if (isRegistry(place))
    return pullLayer(place, digest, credentials_file, (answer, most) =>
      limited(answer.body as ReadableStream<Uint8Array>, Math.min(most, MAX_PACKED)),
    )
  if (place.startsWith('/')) return limited([readFileSync(place)])
  const answer = await fetch(place, { signal: AbortSignal.timeout(FETCH_MS) })
  if (!answer.ok || !answer.body) throw new Error(`${place} answered ${answer.status}`)
  return limited(answer.body)
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
