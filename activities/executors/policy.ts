import { readFileSync } from 'node:fs'
import { BlockList, isIP } from 'node:net'
import Type, { type Static } from 'typebox'
import { Value } from 'typebox/value'
import { parse } from 'yaml'
import { ConfigError } from '../../apps/shared/config.ts'
import { matcherOf } from '../../apps/shared/pattern.ts'
import { type Program, Programs, programsOf } from '../../apps/shared/programs.ts'

const Policy = Type.Object(
  {
    format: Type.Literal('signalbox/executor-policy@1'),
    programs: Type.Optional(Programs),
    pools: Type.Record(
      Type.String({ pattern: '^[a-z][a-z0-9-]{0,62}$' }),
      Type.Object(
        {
          destinations: Type.Array(
            Type.Object(
              {
                scheme: Type.Enum(['http', 'https']),
                host: Type.String({ minLength: 1, maxLength: 253 }),
                networks: Type.Array(Type.String(), { minItems: 1 }),
                ports: Type.Array(Type.String({ pattern: '^\\d{1,5}(-\\d{1,5})?$' }), { minItems: 1 }),
              },
              { additionalProperties: false },
            ),
          ),
          secrets: Type.Array(Type.String({ pattern: '^secret://' })),
          /** Where the agent of the pool takes work; the destinations must allow it. */
          agent: Type.Optional(Type.String({ pattern: '^https?://' })),
        },
        { additionalProperties: false },
      ),
    ),
  },
  { additionalProperties: false },
)
type Destination = Static<typeof Policy>['pools'][string]['destinations'][number]

type Rule = {
  scheme: string
  host: (host: string) => boolean
  networks: BlockList
  ports: [number, number][]
}

/** Which addresses and secrets the steps of each pool may use, and the programs there are. */
export type ExecutorPolicy = {
  /** Rules of the pool that this URL fits; none: it may not be called. */
  rulesFor: (pool: string, url: URL) => readonly Rule[]
  mayResolve: (pool: string, reference: string) => boolean
  /** Where the agent of a pool takes work. */
  agentOf: (pool: string) => string | undefined
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
  const secrets = new Map(Object.entries(pools).map(([pool, own]) => [pool, own.secrets.map(matcherOf)]))
  return {
    rulesFor: (pool, url) => (rules.get(pool) ?? []).filter((rule) => fits(rule, url)),
    agentOf: (pool) => pools[pool]?.agent,
    programOf: (name) => programs.get(name),
    mayResolve: (pool, reference) => (secrets.get(pool) ?? []).some((matches) => matches(reference)),
  }
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
