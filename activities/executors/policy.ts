import { readFileSync } from 'node:fs'
import { BlockList, isIP } from 'node:net'
import Type, { type Static } from 'typebox'
import { Value } from 'typebox/value'
import { parse } from 'yaml'
import { ConfigError } from '../../apps/shared/config.ts'
import { Closed } from '../../apps/shared/contracts/closed.ts'
import { matcherOf } from '../../apps/shared/data/pattern.ts'
import { type Program, Programs, programsOf } from '../../apps/shared/data/programs.ts'

const Policy = Closed({
  format: Type.Literal('signalbox/executor-policy@1'),
  programs: Type.Optional(Programs),
  pools: Type.Record(
    Type.String({ pattern: '^[a-z][a-z0-9-]{0,62}$' }),
    Closed({
      destinations: Type.Array(
        Closed({
          scheme: Type.Enum(['http', 'https']),
          host: Type.String({ minLength: 1, maxLength: 253 }),
          networks: Type.Array(Type.String(), { minItems: 1 }),
          ports: Type.Array(Type.String({ pattern: '^\\d{1,5}(-\\d{1,5})?$' }), { minItems: 1 }),
        }),
      ),
      secrets: Type.Array(Type.String({ pattern: '^secret://' })),
      /** How agents outside take the pool's work: at `endpoint`, which the destinations must allow, or from the stream EXECUTION. */
      mode: Type.Optional(Type.Enum(['http', 'nats'])),
      endpoint: Type.Optional(Type.String({ pattern: '^https?://' })),
      /** The machines that may take the pool's work over the public API; for a pool with mode nats. */
      agents: Type.Optional(Type.Array(Type.String({ pattern: '^machine:' }), { minItems: 1, maxItems: 1000 })),
      /** How much of it may be out at once, over all workers and operations. */
      max_in_flight: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000 })),
    }),
  ),
})
type Pool = Static<typeof Policy>['pools'][string]
type Destination = Pool['destinations'][number]
/** How the agents of a pool are reached. */
export type AgentDoor = { mode: 'http'; endpoint: string } | { mode: 'nats' }

type Rule = { scheme: string; host: (host: string) => boolean; networks: BlockList; ports: [number, number][] }

/** Which addresses and secrets the steps of each pool may use, and the programs there are. */
export type ExecutorPolicy = {
  /** Rules of the pool that this URL fits; none: it may not be called. */
  rulesFor: (pool: string, url: URL) => readonly Rule[]
  mayResolve: (pool: string, reference: string) => boolean
  /** How the agents of a pool take work; undefined if it has none. */
  agentsOf: (pool: string) => AgentDoor | undefined
  /** How much work of each pool with agents may be out at once. */
  places: Readonly<Record<string, number>>
  programOf: (name: string) => Program | undefined
}

/** Cloud metadata services, whatever a rule says. */
const METADATA = new BlockList()
METADATA.addSubnet('169.254.0.0', 16, 'ipv4')
METADATA.addAddress('100.100.100.200', 'ipv4')
METADATA.addAddress('fd00:ec2::254', 'ipv6')
METADATA.addSubnet('fe80::', 10, 'ipv6')

/** Reads the policy file; a broken one stops the start with one line that names it. */
export const loadPolicy = (file: string): ExecutorPolicy => {
  let document: unknown
  try {
    document = parse(readFileSync(file, 'utf8'), { schema: 'core' })
  } catch (error) {
    throw new ConfigError(
      `WORKER__EXECUTORS__POLICY_FILE names ${file}, which cannot be read: ${(error as Error).message}`,
    )
  }
  const [fault] = Value.Errors(Policy, document)
  if (fault) throw new ConfigError(`${file}${fault.instancePath}: ${fault.message}`)
  const { pools, programs: given = {} } = document as Static<typeof Policy>
  const programs = readPrograms(file, given)
  const rules = new Map(
    Object.entries(pools).map(([pool, { destinations }]) => [pool, destinations.map((d) => ruleOf(file, d))]),
  )
  const doors = new Map(Object.entries(pools).flatMap(([name, pool]) => doorOf(file, name, pool)))
  const secrets = new Map(Object.entries(pools).map(([pool, own]) => [pool, own.secrets.map(matcherOf)]))
  return {
    rulesFor: (pool, url) => (rules.get(pool) ?? []).filter((rule) => fits(rule, url)),
    agentsOf: (pool) => doors.get(pool),
    places: Object.fromEntries([...doors.keys()].map((name) => [name, pools[name]?.max_in_flight ?? 0])),
    programOf: (name) => programs.get(name),
    mayResolve: (pool, reference) => (secrets.get(pool) ?? []).some((matches) => matches(reference)),
  }
}

/** A pool with agents says how they take work and how much; one without omits it. */
const doorOf = (file: string, name: string, { mode, endpoint, max_in_flight, agents }: Pool): [string, AgentDoor][] => {
  const fault = (key: string, says: string) => new ConfigError(`${file}/pools/${name}/${key}: ${says}`)
  if (endpoint !== undefined && mode !== 'http') throw fault('endpoint', 'is for a pool with mode http.')
  if (agents !== undefined && mode !== 'nats') throw fault('agents', 'is for a pool with mode nats.')
  if (mode === undefined) {
    if (max_in_flight !== undefined) throw fault('max_in_flight', 'is for a pool with a mode.')
    return []
  }
  if (max_in_flight === undefined) throw fault('max_in_flight', 'is missing: how much work may be out at once.')
  if (mode === 'nats') return [[name, { mode }]]
  if (endpoint === undefined) throw fault('endpoint', 'is missing: where the agent takes work.')
  return [[name, { mode, endpoint: endpoint.replace(/\/+$/, '') }]]
}

const readPrograms = (file: string, given: Static<typeof Programs>) => {
  try {
    return programsOf(given)
  } catch (error) {
    throw new ConfigError(`${file}${(error as Error).message}`)
  }
}

const ruleOf = (file: string, { scheme, host, networks, ports }: Destination): Rule => {
  const list = new BlockList()
  for (const network of networks) {
    const [address = '', bits = ''] = network.split('/')
    const family = isIP(address)
    if (family === 0) throw new ConfigError(`${file}: "${network}" is not a network such as 10.0.0.0/8.`)
    list.addSubnet(address, Number(bits || (family === 4 ? 32 : 128)), family === 4 ? 'ipv4' : 'ipv6')
  }
  return {
    scheme: `${scheme}:`,
    host: matcherOf(host.toLowerCase()),
    networks: list,
    ports: ports.map((range) => {
      const [from = '0', to = from] = range.split('-')
      return [Number(from), Number(to)]
    }),
  }
}

const fits = (rule: Rule, url: URL): boolean => {
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80))
  const host = url.hostname.replace(/^\[|\]$/g, '').toLowerCase()
  return rule.scheme === url.protocol && rule.host(host) && rule.ports.some(([from, to]) => port >= from && port <= to)
}

/** Whether one of the rules lets a connection go to this address, seen through IPv4-mapped spelling. */
export const isAllowed = (rules: readonly Rule[], address: string): boolean => {
  const plain = unmapped(address)
  const family = isIP(plain) === 4 ? 'ipv4' : 'ipv6'
  if (isIP(plain) === 0 || METADATA.check(plain, family)) return false
  return rules.some((rule) => rule.networks.check(plain, family))
}

/** ::ffff:7f00:1 and ::ffff:127.0.0.1 are 127.0.0.1. */
const unmapped = (address: string): string => {
  const mapped = /^(?:0*:)*:?ffff:(?:(\d+\.\d+\.\d+\.\d+)|([0-9a-f]{1,4}):([0-9a-f]{1,4}))$/i.exec(address)
  if (!mapped) return address
  const [, dotted, high = '0', low = '0'] = mapped
  if (dotted) return dotted
  const bits = (Number.parseInt(high, 16) << 16) | Number.parseInt(low, 16)
  return [24, 16, 8, 0].map((shift) => (bits >>> shift) & 255).join('.')
}
