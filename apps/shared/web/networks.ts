import { BlockList, isIP } from 'node:net'

/** Parses a list of networks such as 10.0.0.0/8. Throws `fault` for anything else. */
export const listOf = (networks: readonly string[], fault: (network: string) => Error): BlockList => {
  const list = new BlockList()
  for (const network of networks) {
    const [address = '', bits = ''] = network.split('/')
    const family = isIP(address)
    if (family === 0) throw fault(network)
    list.addSubnet(address, Number(bits || (family === 4 ? 32 : 128)), family === 4 ? 'ipv4' : 'ipv6')
  }
  return list
}

/** ::ffff:7f00:1 and ::ffff:127.0.0.1 are 127.0.0.1. */
export const unmapped = (address: string): string => {
  const mapped = /^(?:0*:)*:?ffff:(?:(\d+\.\d+\.\d+\.\d+)|([0-9a-f]{1,4}):([0-9a-f]{1,4}))$/i.exec(address)
  if (!mapped) return address
  const [, dotted, high = '0', low = '0'] = mapped
  if (dotted) return dotted
  const bits = (Number.parseInt(high, 16) << 16) | Number.parseInt(low, 16)
  return [24, 16, 8, 0].map((shift) => (bits >>> shift) & 255).join('.')
}

/** Whether this is a network with its prefix length, such as 2001:db8::/32. */
export const isNetwork = (text: string): boolean => {
  const [address = '', bits = ''] = text.split('/')
  const most = { 0: -1, 4: 32, 6: 128 }[isIP(address) as 0 | 4 | 6]
  return /^\d{1,3}$/.test(bits) && Number(bits) <= most
}

/** Whether the address is in one of the networks; an empty list means anywhere. */
export const isWithin = (networks: readonly string[], address: string): boolean => {
  if (networks.length === 0) return true
  const plain = unmapped(address)
  const family = isIP(plain)
  return family !== 0 && listOf(networks, (network) => new Error(network)).check(plain, family === 4 ? 'ipv4' : 'ipv6')
}
