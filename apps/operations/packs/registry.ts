import { readFileSync } from 'node:fs'
import { Away } from '../../shared/process/outage.ts'

/** `oci://registry.example/team/net@sha256:<manifest>`; `oci+http://` without TLS. */
const PLACE = /^oci(\+http)?:\/\/([^/@\s]+)\/([a-z0-9][a-z0-9._/-]*)$/
const MANIFEST = 'application/vnd.oci.image.manifest.v1+json'
const MAX_MANIFEST = 65_536
const FETCH_MS = 30_000

type Fetched = (answer: Response, most: number) => Promise<Buffer>
/** Returns bytes that have the digest; fetches them only if they are not kept. */
export type Proved = (what: string, digest: string, fetch: () => Promise<Buffer>) => Promise<Buffer>
type Layer = { mediaType?: string; digest?: string; size?: number }

/** A server's refusal; of an overloaded or broken one, an outage. */
export const refusalBy = (status: number, words: string): Error =>
  new (status >= 500 || status === 429 ? Away : Error)(words)

export const isRegistry = (place: string): boolean => place.startsWith('oci')

/**
 * Pulls the single layer of an artifact by the digest of its manifest (OCI distribution 1.1). Every byte is verified:
 * the manifest by the pinned digest, the layer by the manifest. `read` bounds a body.
 */
export const pullLayer = async (
  place: string,
  digest: string,
  credentials_file: string | undefined,
  proved: Proved,
  read: Fetched,
): Promise<Buffer> => {
  const [, plain, host = '', name = ''] = PLACE.exec(place) ?? []
  if (!name) throw new Error('it is no address of a registry: oci://HOST/NAME')
  const base = `${plain ? 'http' : 'https'}://${host}/v2/${name}`
  const basic = credentials_file === undefined ? undefined : basicOf(credentials_file, host)
  let authorization = basic
  /** Says whose credentials a refusal is about. */
  const login = (status: number): string => {
    if (status !== 401 && status !== 403) return ''
    if (credentials_file === undefined) return '; no credentials were given'
    return basic === undefined
      ? `; ${credentials_file} has no credentials for ${host}`
      : `; it refused the credentials of ${credentials_file}`
  }
  const get = async (path: string, accept: string, most: number): Promise<Buffer> => {
    const ask = () =>
      fetch(`${base}${path}`, {
        headers: { accept, ...(authorization && { authorization }) },
        signal: AbortSignal.timeout(FETCH_MS),
      })
    let answer = await ask()
    const challenge = answer.headers.get('www-authenticate')
    if (answer.status === 401 && challenge && /^bearer /i.test(challenge)) {
      authorization = `Bearer ${await tokenOf(challenge, { basic, login, plain: plain !== undefined })}`
      answer = await ask()
    }
    const { status } = answer
    if (!answer.ok || !answer.body)
      throw refusalBy(status, `${host} answered ${status}${login(status)} for ${name}${path}`)
    return read(answer, most)
  }
  const manifest = await proved('the manifest', digest, () =>
    get(`/manifests/sha256:${digest}`, MANIFEST, MAX_MANIFEST),
  )
  const { layers } = JSON.parse(manifest.toString()) as { layers?: Layer[] }
  const [layer, ...more] = layers ?? []
  const of_layer = /^sha256:([0-9a-f]{64})$/.exec(layer?.digest ?? '')?.[1]
  if (!layer || more.length > 0 || of_layer === undefined)
    throw new Error(`the artifact has ${layers?.length ?? 'no'} layers instead of one, the archive of npm pack`)
  return proved('the layer', of_layer, () =>
    get(`/blobs/${layer.digest}`, layer.mediaType ?? '*/*', Number(layer.size ?? 0)),
  )
}

type Terms = { basic: string | undefined; login: (status: number) => string; plain: boolean }
/** Returns the token that a registry's challenge asks for; anonymous without credentials. */
const tokenOf = async (challenge: string, { basic, login, plain }: Terms): Promise<string> => {
  const parts = Object.fromEntries([...challenge.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, value]) => [key, value]))
  const url = new URL(parts.realm ?? '')
  // It would get the credentials in clear text.
  if (!plain && url.protocol !== 'https:') throw new Error(`${url.host} issues tokens without TLS`)
  for (const key of ['service', 'scope']) if (parts[key]) url.searchParams.set(key, parts[key])
  const headers = basic === undefined ? {} : { authorization: basic }
  const answer = await fetch(url, { headers, signal: AbortSignal.timeout(FETCH_MS) })
  if (!answer.ok) throw refusalBy(answer.status, `${url.host} issued no token: ${answer.status}${login(answer.status)}`)
  const { token, access_token } = (await answer.json()) as { token?: string; access_token?: string }
  const found = token ?? access_token
  if (!found) throw new Error(`${url.host} issued no token`)
  return found
}

/** Returns the credentials that `docker login` has stored for a registry. */
const basicOf = (file: string, host: string): string | undefined => {
  const { auths = {} } = JSON.parse(readFileSync(file, 'utf8')) as { auths?: Record<string, { auth?: string }> }
  const auth = auths[host]?.auth
  return auth === undefined ? undefined : `Basic ${auth}`
}
