import { isObject } from '../../../shared/data/pointer.ts'
import { namesHost } from '../tools/file.ts'
import { ADDRESS, hostKeysOf } from '../tools/host.ts'
import { type Job, refusal } from '../tools/types.ts'

const HOST = /^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$/
const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/
const USER = /^[a-z_][a-z0-9_-]{0,31}$/
const MAX_HOSTS = 10_000
/** Groups of Ansible itself. */
const OWN = ['all', 'ungrouped']

const refuse = (message: string): never => {
  throw refusal(message)
}

/** The variables of a step. Only the agent's file sets how Ansible reaches a host or what it runs there. */
export const varsOf = (given: unknown, name: string): Record<string, unknown> => {
  if (!isObject(given)) return refuse(`"${name}" must be an object.`)
  const wrong = Object.keys(given).find((key) => !NAME.test(key) || key.startsWith('ansible_'))
  return wrong === undefined ? given : refuse(`A step cannot set the variable "${wrong}" in "${name}".`)
}

/** The YAML of a value in which no text acts as a template: "{{ lookup('pipe', 'id') }}" remains these characters. */
export const yamlOf = (value: unknown): string => {
  if (typeof value === 'string') return `!unsafe ${quoted(value)}`
  if (Array.isArray(value)) return `[${value.map(yamlOf).join(', ')}]`
  if (isObject(value))
    return `{${Object.entries(value)
      .map(([key, one]) => `${quoted(key)}: ${yamlOf(one)}`)
      .join(', ')}}`
  return JSON.stringify(value)
}

/** YAML treats these as line breaks. */
const BREAKS = /[\u007f-\u009f\u2028\u2029\ufeff]/g
const quoted = (text: string): string =>
  JSON.stringify(text).replace(BREAKS, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** The inventory of a step, and the known_hosts lines of the host keys that it pins. */
export const inventoryOf = (job: Job, trusted: Record<string, unknown>) => {
  const { hosts, groups = {} } = ((job.work.inputs as Record<string, unknown>).inventory ?? {}) as Record<
    string,
    unknown
  >
  if (!isObject(hosts) || Object.keys(hosts).length === 0 || Object.keys(hosts).length > MAX_HOSTS)
    return refuse(`"inventory.hosts" must be an object of 1 to ${MAX_HOSTS} hosts.`)
  const allowed = job.file.ansible?.hosts ?? []
  if (!isObject(groups)) return refuse('"inventory.groups" must be an object.')
  const keys: string[] = []
  const entries = Object.entries(hosts).map(([name, given]) => {
    if (!HOST.test(name) || OWN.includes(name)) refuse(`"${name}" is not a host name.`)
    const { address = name, port = 22, user, host_keys = [], vars = {} } = (given ?? {}) as Record<string, unknown>
    if (typeof address !== 'string' || !ADDRESS.test(address)) return refuse(`The host "${name}" has no valid address.`)
    if (!namesHost(allowed, address)) refuse(`The agent's file names no host "${address}" for playbooks.`)
    if (!Number.isInteger(port) || Number(port) < 1 || Number(port) > 65_535)
      refuse(`The port of "${name}" is not valid.`)
    if (user !== undefined && !USER.test(String(user))) refuse(`The user of "${name}" is not valid.`)
    const pinned = hostKeysOf(host_keys) ?? refuse(`One of the host keys of "${name}" is not a public key.`)
    for (const key of pinned) keys.push(`${port === 22 ? address : `[${address}]:${port}`} ${key}`)
    const reached = { ansible_host: address, ansible_port: port, ...(user !== undefined && { ansible_user: user }) }
    return [name, { ...varsOf(vars, `inventory.hosts.${name}.vars`), ...reached }] as const
  })
  const children = Object.entries(groups).map(([name, members]) => {
    if (!NAME.test(name) || OWN.includes(name)) refuse(`"${name}" is not a group name.`)
    const unknown = Array.isArray(members) ? members.find((one) => !Object.hasOwn(hosts, String(one))) : name
    if (unknown !== undefined) refuse(`The group "${name}" must list hosts of the inventory; "${unknown}" is not one.`)
    // A limit to the host would be one to the group.
    if (Object.hasOwn(hosts, name) && String(members) !== name)
      refuse(`"${name}" is a host and a group of others, which Ansible cannot tell apart. Rename the group.`)
    return [name, { hosts: Object.fromEntries((members as string[]).map((one) => [one, null])) }] as const
  })
  const all = { hosts: Object.fromEntries(entries), children: Object.fromEntries(children) }
  // The owner's variables may be templates; JSON is YAML.
  const text = `{"all": {"vars": ${JSON.stringify(trusted)}, "hosts": ${yamlOf(all.hosts)}, "children": ${yamlOf(all.children)}}}\n`
  return { text, keys, names: Object.keys(hosts) }
}
