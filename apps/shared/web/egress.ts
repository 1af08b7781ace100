import { isIP } from 'node:net'
import Type, { type Static } from 'typebox'
import { ConfigError } from '../config.ts'
import { Closed } from '../contracts/shapes.ts'
import { matcherOf } from '../data/pattern.ts'
import { bareHost } from './addresses.ts'
import { listOf, unmapped } from './networks.ts'

/** Addresses that may be called: by name, by the networks that the name resolves to, and by port. */
export const Destination = Closed({
  scheme: Type.Enum(['http', 'https']),
  host: Type.String({ minLength: 1, maxLength: 253 }),
  networks: Type.Array(Type.String(), { minItems: 1 }),
  ports: Type.Array(Type.String({ pattern: '^\\d{1,5}(-\\d{1,5})?$' }), { minItems: 1 }),
})
export type Destination = Static<typeof Destination>

export type Rule = {
  scheme: string
  host: (host: string) => boolean
  networks: { check: (address: string, family: 'ipv4' | 'ipv6') => boolean }
  ports: [number, number][]
}

const ours = (networks: string) => listOf(networks.split(' '), (network) => new Error(network))

/** Cloud metadata services, refused whatever a rule says. */
const METADATA = ours('169.254.0.0/16 100.100.100.200/32 fd00:ec2::254/128 fe80::/10')

/** Special IPv4: this host, private, shared, tests, multicast. Public IPv6 is 2000::/3 without tunnels and examples. */
const SPECIAL = ours(
  '0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/3 2001::/23 2001:db8::/32 2002::/16 3fff::/20',
)
const GLOBAL = ours('0.0.0.0/0 2000::/3')

/** Top-level names that no public host has (RFC 6761, 6762, 8375; ICANN for `internal`). */
const RESERVED = /(^|\.)(localhost|local|internal|home\.arpa)$/
/** Whether a host can be on the public network: an address, or a name of several labels that is not reserved. */
const isPublicName = (host: string): boolean => {
  const name = host.replace(/\.$/, '')
  const labels = name.split('.')
  const sized = name.length <= 253 && labels.every(({ length }) => length > 0 && length <= 63)
  return isIP(host) !== 0 || (labels.length > 1 && sized && !RESERVED.test(name))
}

/** Any external host over https: no address of this machine or of a private network. */
export const PUBLIC: Rule = {
  scheme: 'https:',
  host: isPublicName,
  networks: { check: (address, family) => GLOBAL.check(address, family) && !SPECIAL.check(address, family) },
  ports: [[443, 443]],
}

/** Returns the rule for a destination of `source`; an invalid one stops the start. */
export const ruleOf = (source: string, { scheme, host, networks, ports }: Destination): Rule => ({
  scheme: `${scheme}:`,
  host: matcherOf(host.toLowerCase()),
  networks: listOf(
    networks,
    (network) => new ConfigError(`${source}: "${network}" is not a network such as 10.0.0.0/8.`),
  ),
  ports: ports.map((range) => {
    const [from = '0', to = from] = range.split('-')
    return [Number(from), Number(to)]
  }),
})

export const fits = (rule: Rule, url: URL): boolean => {
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80))
  const host = bareHost(url.hostname).toLowerCase()
  return rule.scheme === url.protocol && rule.host(host) && rule.ports.some(([from, to]) => port >= from && port <= to)
}

/** Whether the rules may allow a call to this URL. A name is judged when it is called, an address already here. */
export const mayReach = (rules: readonly Rule[], { hostname }: URL): boolean => {
  const host = bareHost(hostname)
  return rules.length > 0 && (isIP(host) === 0 || isAllowed(rules, host))
}

/** Whether one of the rules allows a connection to this address; an IPv4-mapped address counts as IPv4. */
export const isAllowed = (rules: readonly Rule[], address: string): boolean => {
  const plain = unmapped(address)
  const family = isIP(plain) === 4 ? 'ipv4' : 'ipv6'
  if (isIP(plain) === 0 || METADATA.check(plain, family)) return false
  return rules.some((rule) => rule.networks.check(plain, family))
}
