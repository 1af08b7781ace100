import { isIPv4 } from 'node:net'

/** Returns the eight groups of an IPv6 address, without leading zeros. */
export const groupsOf = (address: string): string[] => {
  const [head = '', tail] = address.toLowerCase().split('::')
  const left = head ? head.split(':') : []
  const right = tail ? tail.split(':') : []
  const gap = tail === undefined ? 0 : 8 - left.length - right.length
  return [...left, ...Array<string>(Math.max(0, gap)).fill('0'), ...right].map((group) => group.replace(/^0+(?=.)/, ''))
}

/**
 * Returns the name under which an address is counted: IPv6 by /64, because one host may use every address of its
 * network.
 */
export const addressKey = (address: string): string =>
  isIPv4(address) || address === '' ? address : `${groupsOf(address).slice(0, 4).join(':')}::/64`
