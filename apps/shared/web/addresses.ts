import { isIPv4 } from 'node:net'

/** A URL has brackets around an IPv6 address; sockets and certificates have none. */
export const bareHost = (hostname: string): string => hostname.replace(/^\[(.+)\]$/, '$1')

/** Returns the eight groups of an IPv6 address, without leading zeros. */
export const groupsOf = (address: string): string[] => {
  const [head = '', tail] = address.toLowerCase().split('::')
  const left = head ? head.split(':') : []
  const right = tail ? tail.split(':') : []
  const gap = tail === undefined ? 0 : 8 - left.length - right.length
  return [...left, ...Array<string>(Math.max(0, gap)).fill('0'), ...right].map((group) => group.replace(/^0+(?=.)/, ''))
}

/** The network that guesses are counted by: of IPv4 a /24, of IPv6 a /64. */
export const networkOf = (address: string): string =>
  isIPv4(address) ? `${address.split('.').slice(0, 3).join('.')}.0/24` : addressKey(address)

/** The name under which an address is counted: IPv6 by /64, since one host may use every address of its network. */
export const addressKey = (address: string): string =>
  isIPv4(address) || address === '' ? address : `${groupsOf(address).slice(0, 4).join(':')}::/64`
