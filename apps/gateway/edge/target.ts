import { BlockList, isIP, isIPv4 } from 'node:net'
import { ConfigError } from '../../shared/config.ts'
import { AppError } from '../../shared/errors.ts'
import { addressKey, groupsOf } from '../../shared/web/addresses.ts'

/** A request target that passed the path rules: its path decoded, also by segments, and the query as it came. */
export type Target = { path: string; segments: string[]; query: string }

const MAX_PATH = 2048
export const MAX_QUERY = 8192
/** Characters that a path may hold unescaped (RFC 3986 pchar without percent sequences). */
const RAW = /^[A-Za-z0-9\-._~:@!$&'()*+,;=]*$/
/** Characters that a percent sequence may stand for: none that could change where a path leads. */
const ENCODED = /^[A-Za-z0-9\-_~:@!$&'()*+,;=]$/
const QUERY = /^(?:[A-Za-z0-9\-._~:@!$&'()*+,;=/?[\]|]|%[0-9A-Fa-f]{2})*$/

/**
 * Takes the base path off a request that came below it: the proxy kept it, or names it in X-Forwarded-Prefix. Only the
 * configured path counts, so a caller cannot choose where our links lead.
 */
export const splitBase = (url: string, named: unknown, base: string): { url: string; base: string } =>
  base !== '' && url.startsWith(`${base}/`)
    ? { url: url.slice(base.length), base }
    : { url, base: named === base ? base : '' }

const bad = (detail: string) => new AppError('validation_error', 'bad_path', detail)

/**
 * Parses a request target by the path rules of auth.md 6. It refuses whatever two parsers could read differently: forms
 * other than `/path?query`, empty and dot segments, backslashes, raw non-ASCII, and percent sequences of anything but
 * harmless characters.
 */
export const parseTarget = (url: string): Target => {
  const mark = url.indexOf('?')
  const path = mark < 0 ? url : url.slice(0, mark)
  const query = mark < 0 ? '' : url.slice(mark + 1)
  if (path.length > MAX_PATH || query.length > MAX_QUERY) {
    throw new AppError('validation_error', 'uri_too_long', 'The request target is too long.', {
      hint: `A path has at most ${MAX_PATH} and a query at most ${MAX_QUERY} characters.`,
    })
  }
  if (!path.startsWith('/')) throw bad('The request target must be a path.')
  if (!QUERY.test(query)) throw bad('The query holds characters that must be percent-encoded.')
  const parts = path.slice(1).split('/')
  // A path with a trailing slash is a different path, which no route has; an empty segment inside is refused.
  const segments = parts.map((part, at) => {
    if (part === '' && at < parts.length - 1) throw bad('The path has an empty segment.')
    return decodeSegment(part)
  })
  return { path: `/${segments.join('/')}`, segments, query }
}

const decodeSegment = (part: string): string => {
  if (part === '.' || part.startsWith('..')) throw bad('The path has a dot segment.')
  if (!part.includes('%')) {
    if (!RAW.test(part)) throw bad('The path holds characters that are not allowed.')
    return part
  }
  const pieces = part.split('%')
  return pieces
    .map((piece, at) => {
      const hex = at === 0 ? '' : piece.slice(0, 2)
      const char = at === 0 ? '' : String.fromCharCode(Number.parseInt(/^[0-9A-Fa-f]{2}$/.test(hex) ? hex : '0', 16))
      const rest = at === 0 ? piece : piece.slice(2)
      if ((at > 0 && !ENCODED.test(char)) || !RAW.test(rest))
        throw bad('The path holds a percent sequence that is not allowed.')
      return char + rest
    })
    .join('')
}

/** The client of a request: its address, and the key that its limits count by (IPv6 by /64). */
export type ClientAddress = { address: string; key: string }

/** Clients send many requests, so the result for each spelling is cached. */
const MAX_KNOWN = 1000
const MAX_SPELLING = 200

/** Finds the client's address: the socket's, or behind trusted proxies the right-most entry that is not one of them. */
export const createAddressReader = (trusted: readonly string[]) => {
  const proxies = new BlockList()
  for (const cidr of trusted) addTo(proxies, cidr)
  const isTrusted = (address: string) => trusted.length > 0 && proxies.check(address, isIPv4(address) ? 'ipv4' : 'ipv6')

  const read = (socket_address: string | undefined, forwarded: string | string[] | undefined): ClientAddress => {
    let address = normalize(socket_address ?? '') ?? '0.0.0.0'
    const chain = [forwarded ?? []].flat().join(',').split(',')
    while (isTrusted(address)) {
      const next = normalize(withoutPort((chain.pop() ?? '').trim()))
      if (next === undefined) break
      address = next
    }
    return { address, key: addressKey(address) }
  }
  const known = new Map<string, ClientAddress>()
  return (socket_address: string | undefined, forwarded: string | string[] | undefined): ClientAddress => {
    const spelling = `${socket_address} ${forwarded}`
    let client = known.get(spelling)
    if (client === undefined) {
      client = read(socket_address, forwarded)
      if (known.size >= MAX_KNOWN) known.delete(known.keys().next().value as string)
      if (spelling.length <= MAX_SPELLING) known.set(spelling, client)
    }
    return client
  }
}
export type ReadAddress = ReturnType<typeof createAddressReader>

const addTo = (list: BlockList, cidr: string) => {
  const [address = '', bits] = cidr.split('/')
  const family = isIP(address)
  if (family === 0)
    throw new ConfigError(`GATEWAY__HTTP__TRUSTED_PROXIES holds ${JSON.stringify(cidr)}, which is not a CIDR range.`)
  list.addSubnet(address, Number(bits ?? (family === 4 ? 32 : 128)), family === 4 ? 'ipv4' : 'ipv6')
}

/** An entry of X-Forwarded-For: some proxies add the port, and brackets around IPv6. */
const withoutPort = (entry: string): string =>
  /^(?:(\d+\.\d+\.\d+\.\d+)|\[([^\]]+)\])(?::\d{1,5})?$/.exec(entry)?.slice(1).find(Boolean) ?? entry

/** Returns one spelling per address: IPv4-mapped ones as IPv4, IPv6 without zone. `undefined` for other text. */
const normalize = (text: string): string | undefined => {
  const [address = ''] = text.split('%')
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  const plain = mapped ?? address
  if (isIP(plain) === 0) return undefined
  return isIPv4(plain) ? plain : groupsOf(plain).join(':')
}
