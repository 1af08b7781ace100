import { createHash } from 'node:crypto'
import { readdir, readFile, stat } from 'node:fs/promises'
import type { IncomingHttpHeaders } from 'node:http'
import { join, relative } from 'node:path'
import { gzipSync } from 'node:zlib'
import Negotiator from 'negotiator'
import { onlyCookie } from '../../shared/web/cookies.ts'

/** The policy of every HTML answer (console.md 2). */
const CONSOLE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "worker-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  'trusted-types signalbox-worker',
].join('; ')

/** The policy of the service worker itself: no foreign scripts, and requests to us alone. */
const WORKER_POLICY = "default-src 'none'; connect-src 'self'"

const TYPES: Record<string, string> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  json: 'application/json; charset=utf-8',
  map: 'application/json; charset=utf-8',
  svg: 'image/svg+xml',
  png: 'image/png',
  ico: 'image/x-icon',
  webmanifest: 'application/manifest+json',
  woff2: 'font/woff2',
  txt: 'text/plain; charset=utf-8',
  wasm: 'application/wasm',
}
const COMPRESSED = /^(text\/|application\/(json|manifest|wasm)|image\/svg)/
const CHECK_MS = 1000
/** The console's page in each language; readers of neither language get English. */
const PAGES: Record<string, string> = { en: '/index.html', de: '/index.de.html' }
/** Prefixes that never answer with the console's page, in upper or lower case. */
const RESERVED = new Set([
  ...['api', 'auth', 'v1', 'oauth', 'scim', 'internal'],
  ...['docs', 'openapi.json', 'assets', 'health', 'metrics', '.well-known'],
])

export type StaticFile = {
  headers: Record<string, string>
  bytes: Buffer
  gzip: Buffer | undefined
  /** The content policy of a page or of the service worker; files without one get the policy of API answers. */
  policy: string | undefined
}

/** The console as files in memory, by exact path; page paths answer index.html. Picks up a new build in a second. */
export const createStaticFiles = (dir: string, meta: Record<string, string>) => {
  let files = new Map<string, StaticFile>()
  let stamp = ''
  let checked_at = Number.NEGATIVE_INFINITY
  let loading: Promise<void> | undefined

  const load = async () => {
    const found = await Promise.all(Object.values(PAGES).map((page) => stat(join(dir, page)).catch(() => undefined)))
    const now = found.map((page) => (page ? `${page.mtimeMs}:${page.size}` : '')).join()
    if (now === stamp) return
    files = found[0] ? await readFiles(dir, meta) : new Map()
    stamp = now
  }
  const refresh = async () => {
    if (performance.now() - checked_at < CHECK_MS) return
    loading ??= load().finally(() => {
      checked_at = performance.now()
      loading = undefined
    })
    await loading
  }

  const pageFor = (headers: IncomingHttpHeaders) =>
    files.get(PAGES[languageOf(headers)] ?? '') ?? files.get('/index.html')

  /** Returns the file of a path, or the console's page in the reader's language if a browser asks for a route of it. */
  return async (
    path: string,
    segments: readonly string[],
    headers: IncomingHttpHeaders,
  ): Promise<StaticFile | undefined> => {
    await refresh()
    if (path === '/') return pageFor(headers)
    const exact = files.get(path)
    if (exact) return exact
    // The console has a page at this exact path; only machines request the paths below it.
    const reserved = path !== '/health' && RESERVED.has((segments[0] ?? '').toLowerCase())
    return !reserved && headers.accept?.includes('text/html') ? pageFor(headers) : undefined
  }
}

/** Returns the language that the reader has chosen in the console, else the one that the browser prefers. */
const languageOf = (headers: IncomingHttpHeaders): string => {
  const chosen = onlyCookie(headers.cookie, 'language')
  if (chosen !== undefined && Object.hasOwn(PAGES, chosen)) return chosen
  return new Negotiator({ headers }).languages(Object.keys(PAGES))[0] ?? 'en'
}
export type StaticFiles = ReturnType<typeof createStaticFiles>

const readFiles = async (dir: string, meta: Record<string, string>): Promise<Map<string, StaticFile>> => {
  const files = new Map<string, StaticFile>()
  for (const entry of await readdir(dir, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const file = join(entry.parentPath, entry.name)
    const path = `/${relative(dir, file).replaceAll('\\', '/')}`
    const bytes = await readFile(file)
    files.set(path, fileOf(path, path.endsWith('.html') ? withMeta(bytes, meta) : bytes))
  }
  return files
}

/** Returns a file in memory with its headers; `policy` is the content policy if it is a page. */
export const fileOf = (path: string, bytes: Buffer, page_policy = CONSOLE_POLICY): StaticFile => {
  const type = TYPES[path.slice(path.lastIndexOf('.') + 1)] ?? 'application/octet-stream'
  const html = path.endsWith('.html')
  const gzip = COMPRESSED.test(type) && bytes.length > 1024 ? gzipSync(bytes) : undefined
  return {
    bytes,
    gzip,
    policy: html ? page_policy : path === '/sw.js' ? WORKER_POLICY : undefined,
    headers: {
      'content-type': type,
      // Weak where it stands for the plain and the compressed form alike.
      etag: `${gzip ? 'W/' : ''}"${createHash('sha256').update(bytes).digest('base64url').slice(0, 27)}"`,
      'cache-control': path.startsWith('/assets/') ? 'public, max-age=31536000, immutable' : 'no-cache',
      vary: html ? 'Accept-Encoding, Accept-Language, Cookie, Origin' : 'Accept-Encoding, Origin',
      ...(html && { 'cross-origin-opener-policy': 'same-origin' }),
    },
  }
}

const escaped = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

/** Writes the values of `<meta name="signalbox-…">` into the page, adding missing tags. */
const withMeta = (bytes: Buffer, meta: Record<string, string>): Buffer => {
  let html = bytes.toString('utf8')
  for (const [name, value] of Object.entries(meta)) {
    const tag = `<meta name="signalbox-${name}" content="${escaped(value)}" />`
    const existing = new RegExp(`<meta name="signalbox-${name}"[^>]*>`)
    html = existing.test(html) ? html.replace(existing, () => tag) : html.replace('<head>', () => `<head>\n    ${tag}`)
  }
  return Buffer.from(html)
}
