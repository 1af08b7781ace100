import type { Static } from 'typebox'
import { isPrivateKey } from '../../shared/contracts/identity/jwk.ts'
import type { MachineView, MadeCredential } from '../../shared/contracts/identity/machines.ts'
import { REFUSAL_WORDS, type RefusalView } from '../../shared/contracts/session/refusals.ts'
import { type Command, type Context, needed, numberOf, readDocument, text, type Values } from '../command.ts'
import { missing, usageError } from '../errors.ts'
import { confirm } from '../terminal/ask.ts'
import { minute, short, word } from '../terminal/output.ts'
import { endingOf, isPending, type Pending, tellControl, waiting } from './change.ts'
import { find } from './user.ts'

type Machine = MachineView
type Credential = Machine['credentials'][number]
type Made = Static<typeof MadeCredential>

const PATH = '/api/v1/admin/machines'
const OWN = '/api/v1/users/me/machines'

export const machineCommands: Command[] = [
  {
    name: 'machine list',
    about: 'Machines with their roles, owners and credentials.',
    examples: ['machine list', 'machine list --mine'],
    options: { mine: { type: 'boolean', about: 'only those that you answer for' } },
    run: async ({ api, out, all }, _words, values) =>
      out.list(await api.list<Machine>(values.mine ? OWN : PATH, {}, all), 'id', [
        ['name', ({ username }) => username],
        ['status', ({ status }) => word(status)],
        ['roles', ({ roles }) => roles.join(', ')],
        ['owners', ({ owners }) => owners.map(({ username }) => username).join(', ')],
        ['credentials', ({ credentials }) => credentials.filter(isLive).map(wordsOf).join(', ')],
      ]),
  },
  {
    name: 'machine create',
    takes: 'NAME',
    about: 'Creates a machine without rights; grant it a role with signalbox user grant machine:NAME ROLE.',
    examples: ['machine create ci-deploy --owner olga,eva'],
    options: { owner: { type: 'string', value: 'NAMES', about: 'the people who answer for it, by comma' } },
    run: async (context, [name = ''], values) => {
      const owners: string[] = []
      for (const given of needed(values, 'owner').split(',')) owners.push((await find(context, given.trim())).id)
      const made = await context.api.post<Machine>(PATH, { name: name.replace(/^machine:/, ''), owners })
      context.out.one(made, 'id', ({ username, id }) => [`${username}   ${id}`])
    },
  },
  {
    name: 'machine owner',
    takes: 'ACTION NAME USER',
    about: 'ACTION is add: another person answers for a machine. Owners who leave no longer count.',
    examples: ['machine owner add ci-deploy eva'],
    run: async (context, [action = '', name = '', given = '']) => {
      if (action !== 'add') throw usageError(`The action must be add, not ${JSON.stringify(action)}.`)
      const machine = await machineNamed(context, name)
      const { id, username } = await find(context, given)
      await context.api.send('PUT', `${PATH}/${machine.id}/owners/${id}`)
      context.out.note(`${username} now answers for ${machine.username}.`)
    },
  },
  {
    name: 'machine key',
    takes: 'ACTION NAME [KEY]',
    about:
      'ACTION is add, rotate or revoke. A new key is printed once, unless --jwk registers one of your own; rotating leaves both keys for a while.',
    examples: [
      'machine key add ci-deploy --permissions operation:read,intent:create --days 30',
      'machine key add ci-deploy --permissions signal:send --networks 203.0.113.0/24',
      'machine key add ci-deploy --permissions signal:send --jwk public.json --scope region_id=eu1 --name signer',
      'machine key rotate ci-deploy 77b0aa --overlap 3600',
      'machine key revoke ci-deploy 77b0aa',
    ],
    options: {
      permissions: { type: 'string', value: 'LIST', about: 'what the key permits, by comma' },
      jwk: { type: 'string', value: 'FILE', about: 'the public half of your own key, a JWK with kid and alg' },
      scope: { type: 'string', value: 'LIST', about: 'the only places that it covers, by comma: region_id=eu1' },
      name: { type: 'string', about: 'its name in lists; cli by default' },
      days: { type: 'string', value: 'N', about: 'days until it expires; 90 by default' },
      networks: { type: 'string', value: 'LIST', about: 'the only networks that may use it, by comma: 203.0.113.0/24' },
      overlap: { type: 'string', value: 'SECONDS', about: 'how long the old key still works; a day by default' },
    },
    run: async (context, [action = '', name = '', key = ''], values) => {
      const act = ACTIONS[action]
      if (!act) throw usageError(`The action must be add, rotate or revoke, not ${JSON.stringify(action)}.`)
      return act(context, await machineNamed(context, name), key, values)
    },
  },
  {
    name: 'machine trust',
    takes: 'ACTION NAME',
    about: 'ACTION is add: lets the tokens of a CI system stand for a machine. To end it: machine key revoke.',
    examples: ['machine trust add ci-deploy -f trust.json'],
    options: {
      file: {
        type: 'string',
        short: 'f',
        value: 'FILE',
        about: 'name, permissions and trust, YAML or JSON; - is stdin',
      },
      days: { type: 'string', value: 'N', about: 'days until it expires; 90 by default' },
    },
    run: async (context, [action = '', name = ''], values) => {
      if (action !== 'add') throw usageError(`The action must be add, not ${JSON.stringify(action)}.`)
      const given = objectIn(needed(values, 'file'))
      const expires_in_days = numberOf(values, 'days')
      const body = { ...given, ...(expires_in_days !== undefined && { expires_in_days }), kind: 'trust' }
      await create(context, await machineNamed(context, name), body)
    },
  },
  {
    name: 'machine refusals',
    takes: 'NAME',
    about: 'Why a machine got no token, newest first; for its owners, administrators and auditors.',
    examples: ['machine refusals ci-deploy'],
    run: async (context, [name = '']) => {
      const own = await context.api.list<Machine>(OWN, { page_size: '500' }, true)
      const mine = own.find(isNamed(name))
      const path = mine ? `${OWN}/${mine.id}` : `${PATH}/${(await machineNamed(context, name)).id}`
      context.out.list(await context.api.list<RefusalView>(`${path}/refusals`, {}, context.all), 'at', [
        ['at', ({ at }) => minute(at)],
        ['cause', ({ cause }) => cause],
        ['why', ({ cause, claim }) => [REFUSAL_WORDS[cause], claim].filter(Boolean).join(' ')],
        ['credential', ({ credential_id }) => (credential_id ? short(credential_id) : '')],
        ['from', ({ address }) => address ?? ''],
      ])
    },
  },
  {
    name: 'machine disable',
    takes: 'NAME',
    about: 'Ends every token of a machine and issues no new one.',
    examples: ["machine disable ci-deploy --reason 'key leaked'"],
    options: { reason: { type: 'string', value: 'TEXT', about: 'why; recorded' } },
    run: async (context, [name = ''], values) => {
      const reason = needed(values, 'reason')
      const { id, username } = await machineNamed(context, name)
      if (!context.yes) await confirm(`disable ${username}?`)
      const made = await context.api.post<{ sessions?: string }>(`/api/v1/admin/users/${id}/disable`, { reason })
      context.out.note(`${username} is disabled.${endingOf(made)}`)
    },
  },
]

type Act = (context: Context, machine: Machine, key: string, values: Values) => Promise<void>
const ACTIONS: Record<string, Act> = {
  add: async (context, machine, _key, values) => {
    const file = text(values, 'jwk')
    const kind = file === undefined ? { kind: 'key' } : { kind: 'jwk', jwk: publicIn(file) }
    const permissions = needed(values, 'permissions').split(',')
    const networks = text(values, 'networks')?.split(',')
    const scope = scopeOf(text(values, 'scope'))
    const limits = { permissions, networks, scope, expires_in_days: numberOf(values, 'days') }
    await create(context, machine, { ...kind, name: text(values, 'name') ?? 'cli', ...limits })
  },
  rotate: async (context, machine, key, values) => {
    const path = `${pathOf(machine, key)}/rotate`
    const body = { overlap_s: numberOf(values, 'overlap'), expires_in_days: numberOf(values, 'days') }
    await show(context, machine.username, 'key', await context.api.post<Made | Pending>(path, body))
  },
  revoke: async (context, machine, key) => {
    const path = pathOf(machine, key)
    if (!context.yes) await confirm(`revoke the credential ${key} of ${machine.username}?`)
    const { body } = await context.api.send<{ sessions?: string } | string>('DELETE', path)
    context.out.note(`Revoked.${endingOf(body)}`)
  },
}

const create = async (context: Context, { id, username }: Machine, body: { kind: string; [name: string]: unknown }) =>
  show(context, username, body.kind, await context.api.post<Made | Pending>(`${PATH}/${id}/credentials`, body))

const objectIn = (file: string): object => {
  const given = readDocument(file)
  if (typeof given === 'object' && given !== null && !Array.isArray(given)) return given
  throw usageError(`${file} must hold an object.`)
}

/** Never sends the private half, not even to be refused. */
const publicIn = (file: string): object => {
  const given = objectIn(file)
  if (!isPrivateKey(given)) return given
  throw usageError(`${file} holds the private half of a key.`, 'Give only its public members, such as kty, crv and x.')
}

const scopeOf = (given: string | undefined): Record<string, string> | undefined =>
  given === undefined
    ? undefined
    : Object.fromEntries(
        given.split(',').map((part) => {
          const [name = '', value = ''] = part.split('=').map((word) => word.trim())
          if (name === '' || value === '')
            throw usageError('--scope takes a list such as region_id=eu1,type_key=fleet.host.')
          return [name, value]
        }),
      )

/** How to replace a key that was lost with the first answer: a repeat does not show it. */
const remedyOf = (username: string, made: Made | Pending): string =>
  isPending(made)
    ? `withdraw the change and request another: signalbox user withdraw ${made.change.id}`
    : `make another: signalbox machine key rotate ${username.replace(/^machine:/, '')} ${short(made.credential.id)}`

/** Shows a new key, once, and the change that the credential waits for. */
const show = async (context: Context, username: string, kind: string, made: (Made | Pending) & { key?: string }) => {
  const named = kind === 'key' && made.key !== undefined
  const line = named ? `Key of ${username}, shown once: ${made.key}` : `A new ${kind} of ${username}.`
  if (kind === 'key' && !named)
    context.out.note(`Only the first answer showed the key. If it was lost, ${remedyOf(username, made)}`)
  if (isPending(made)) {
    context.out.note(line)
    return waiting(context, made)
  }
  context.out.one(
    made,
    ({ credential }) => made.key ?? credential.id,
    ({ credential }) => [line, `Valid until ${credential.expires_at}.`],
  )
  return tellControl(context)
}

const isLive = ({ revoked_at, expires_at }: Credential): boolean =>
  revoked_at === null && Date.parse(expires_at) > Date.now()
const wordsOf = ({ id, kind, expires_at, last_used_at, unused }: Credential): string => {
  const used = unused ? ', not used for 90 days' : last_used_at === null ? ', never used' : ''
  return `${kind} ${short(id)} until ${minute(expires_at)}${used}`
}

const pathOf = ({ id, username, credentials }: Machine, given: string): string => {
  const found = credentials.filter((one) => isLive(one) && given !== '' && one.id.endsWith(given))
  if (found.length === 1) return `${PATH}/${id}/credentials/${found[0]?.id}`
  const remedy = 'See: signalbox machine list'
  if (found.length === 0) throw missing(`${username} has no credential ${JSON.stringify(given)}.`, remedy)
  throw usageError(`${username} has more than one credential ${JSON.stringify(given)}.`, remedy)
}

const isNamed =
  (given: string) =>
  ({ id, username }: Machine): boolean =>
    id === given || username === `machine:${given.replace(/^machine:/, '')}`

const machineNamed = async ({ api }: Context, given: string): Promise<Machine> => {
  const machines = await api.list<Machine>(PATH, { page_size: '500' }, true)
  const found = machines.find(isNamed(given))
  if (found) return found
  throw missing(`No machine is called ${JSON.stringify(given)}.`)
}
