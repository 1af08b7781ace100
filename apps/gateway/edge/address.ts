import { BlockList, isIP, isIPv4 } from 'node:net'
import { ConfigError } from '../../shared/config.ts'
import { addressKey, groupsOf } from '../../shared/web/addresses.ts'

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
      const next = normalize((chain.pop() ?? '').trim())
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

/** Returns one spelling per address: IPv4-mapped ones as IPv4, IPv6 without zone. `undefined` for other text. */
const normalize = (text: string): string | undefined => {
  const [address = ''] = text.split('%')
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  const plain = mapped ?? address
  if (isIP(plain) === 0) return undefined
  return isIPv4(plain) ? plain : groupsOf(plain).join(':')
}
