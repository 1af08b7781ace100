import type { Static } from 'typebox'
import { foldUsername } from '../../shared/auth/username.ts'
import type { ProviderViews, UnlinkedUser } from '../../shared/contracts/identity/providers.ts'
import type { Enrolment, UserDetail } from '../../shared/contracts/identity/users.ts'
import type { LosingGates } from '../../shared/contracts/operations/gates.ts'
import type { ProviderTrial } from '../../shared/contracts/session/sso.ts'
import { type Command, type Context, isWholeId, needed, text, type Values } from '../command.ts'
import { missing } from '../errors.ts'
import { withQuery } from '../session/api.ts'
import { codeByBrowser } from '../session/browser.ts'
import { confirm } from '../terminal/ask.ts'
import { harmless, word } from '../terminal/output.ts'
import { changeCommands, endingOf, isPending, type Pending, tellControl, waiting } from './change.ts'

type User = Static<typeof UserDetail>
type Providers = Static<typeof ProviderViews>
type Trial = Static<typeof ProviderTrial>
type Link = { enrolment: Static<typeof Enrolment> }
type Made = Link & { user: User }
type Losing = Static<typeof LosingGates>

const STATUSES = ['active', 'disabled', 'deleted']

export const userCommands: Command[] = [
  {
    name: 'user list',
    about: 'Accounts with their roles and groups; --status and --q narrow them.',
    examples: ['user list --status active', 'user list --q ev'],
    options: {
      status: {
        type: 'string',
        choices: [...STATUSES, ...STATUSES.map((one) => one.toUpperCase())],
        about: 'accounts of this status only',
      },
      q: { type: 'string', value: 'TEXT', about: 'names that contain this' },
    },
    run: async ({ api, out, all }, _, values) =>
      out.list(
        await api.list<User>(
          '/api/v1/admin/users',
          { status: text(values, 'status')?.toUpperCase(), q: text(values, 'q') },
          all,
        ),
        'id',
        [
          ['name', ({ username }) => username],
          ['status', ({ status }) => word(status)],
          ['roles', ({ roles }) => roles.join(', ')],
          ['groups', ({ groups }) => groups.join(', ')],
          ['id', ({ id }) => id],
        ],
      ),
  },
  {
    name: 'provider list',
    about: "Identity providers as they are in force; their file is the deployer's.",
    examples: ['provider list', 'provider list -o json'],
    run: async ({ api, out }) => {
      const { items, fault } = await api.get<Providers>('/api/v1/admin/providers')
      out.list(items, 'id', [
        ['id', ({ id }) => id],
        ['title', ({ title }) => title],
        ['status', ({ enabled }) => (enabled ? 'on' : 'off')],
        ['accounts', ({ people }) => String(people)],
        ['new people', ({ creates_accounts }) => (creates_accounts ? 'get an account' : 'need an account')],
        ['groups', ({ map }) => map.map(({ name }) => name).join(', ')],
        ['directory', ({ scim }) => scim?.machine ?? ''],
      ])
      if (fault !== null) out.note(`The file was changed and cannot be used; this still applies. ${fault}`)
    },
  },
  {
    name: 'user unlinked',
    about: 'Active people whom no identity provider signs in, and accounts of providers that may be theirs too.',
    examples: ['user unlinked'],
    run: async ({ api, out, all }) =>
      out.list(await api.list<UnlinkedUser>('/api/v1/admin/unlinked-users', {}, all), 'id', [
        ['name', ({ username }) => username],
        ['roles', ({ roles }) => roles.join(', ')],
        ['note', ({ emergency, enrolled }) => (emergency ? 'emergency' : enrolled ? '' : 'never signed in')],
        ['perhaps also', ({ twins }) => twins.map(({ username }) => username).join(', ')],
        ['id', ({ id }) => id],
      ]),
  },
  {
    name: 'provider try',
    takes: 'PROVIDER',
    about: 'Shows what a sign-in at a provider would do, without signing anyone in. Opens the browser.',
    examples: ['provider try corp'],
    run: async ({ api, out }, [provider = '']) => {
      const show = (address: string) => out.note(`Sign in at the provider as the person to test:\n${address}`)
      const { code } = await codeByBrowser(api.url, provider, show, undefined, 'trial')
      out.one(await api.get<Trial>(`/api/v1/admin/provider-trials/${code}`), ({ account }) => account ?? '', linesOf)
    },
  },
  {
    name: 'user create',
    takes: 'NAME',
    about: 'Creates an account, with --role everywhere if given, and prints its one-time link or the pending change.',
    examples: ['user create eva --role approver'],
    options: { role: { type: 'string', about: 'the role to grant' } },
    run: async (context, [username = ''], values) => {
      const { api, out } = context
      const role = text(values, 'role')
      const body = { username, grants: role === undefined ? [] : [{ role, scope: {} }] }
      const made = await api.post<Made | Pending>('/api/v1/admin/users', body)
      if (isPending(made)) return waiting(context, made)
      out.one(
        made,
        ({ user }) => user.id,
        ({ user, enrolment }) => [
          `${word(user.status)}   ${user.username}   ${user.id}`,
          `Link, works once: ${enrolment.url}`,
        ],
      )
      return tellControl(context)
    },
  },
  {
    name: 'user grant',
    takes: 'NAME ROLE',
    about: 'Gives an account a role everywhere, or asks a second administrator to.',
    examples: ['user grant eva approver'],
    run: async (context, [given = '', role = '']) => {
      const { id, username } = await find(context, given)
      const body = { subject_type: 'user', subject_id: id, role }
      const made = await context.api.post<object | Pending>('/api/v1/admin/grants', body)
      if (isPending(made)) return waiting(context, made)
      context.out.note(`${username} now has the role ${role}.`)
      return tellControl(context)
    },
  },
  linking('reset', 'enrolment-token', 'Asks for a new one-time link to set a password.'),
  linking(
    'recover',
    'recovery',
    'Ends all ways into an account: passkeys, provider links, sessions and password. Asks for a new link.',
  ),
  acting('disable', 'Ends every session of an account and blocks its sign-in.'),
  acting('enable', 'Lets a disabled account sign in again.'),
  {
    name: 'user unlock',
    takes: 'NAME',
    about: 'Clears the failed sign-ins of an account.',
    examples: ['user unlock eva'],
    run: async (context, [given = '']) => {
      const { id, username } = await find(context, given)
      await context.api.send('POST', `/api/v1/admin/users/${id}/unlock`)
      context.out.note(`${username} may sign in again.`)
    },
  },
  ...changeCommands,
]

const linesOf = ({ outcome, account, groups, roles, second_factor, refusal, claims }: Trial): string[] => {
  const list = (names: readonly string[]) => names.join(', ') || 'none'
  const effect = refusal
    ? [`refused: ${refusal.code}. ${refusal.detail}`]
    : [
        `${outcome === 'created' ? 'creates' : 'signs in'} ${account}`,
        `groups: ${list(groups)}; roles: ${list(roles)}; second factor: ${second_factor ? 'proved there' : 'asked for here'}`,
      ]
  if (!claims) return effect
  const { subject, username, email, methods } = claims
  const there = claims.groups ? list(claims.groups) : 'not in the answer, so rights stay'
  return [
    ...effect,
    `claims: subject ${subject}, name ${username}, e-mail ${email}, methods ${list(methods)}`,
    `groups there: ${there}`,
  ]
}

function linking(verb: 'reset' | 'recover', path: string, about: string): Command {
  return {
    name: `user ${verb}`,
    takes: 'NAME',
    about,
    examples: [`user ${verb} eva`],
    run: async (context, [given = '']) => {
      const { id, username } = await find(context, given)
      if (verb === 'recover' && !context.yes) await confirm(`End all sessions and credentials of ${username}?`)
      const made = await context.api.post<Link | Pending | { user: User }>(
        `/api/v1/admin/users/${id}/${path}`,
        undefined,
      )
      if (isPending(made)) return waiting(context, made)
      if ('user' in made) {
        context.out.note(`${username} has no passkey and no app now: sign in through the provider and add new ones.`)
        return tellControl(context)
      }
      context.out.one(
        made,
        ({ enrolment }) => enrolment.url,
        ({ enrolment }) => [`Link of ${username}, works once: ${enrolment.url}`],
      )
      return tellControl(context)
    },
  }
}

function acting(verb: 'disable' | 'enable', about: string): Command {
  return {
    name: `user ${verb}`,
    takes: 'NAME',
    about,
    examples: [`user ${verb} eva --reason 'on leave'`],
    options: { reason: { type: 'string', value: 'TEXT', about: 'why; recorded' } },
    run: async (context: Context, [given = '']: string[], values: Values) => {
      const reason = needed(values, 'reason')
      const { id, username } = await find(context, given)
      if (!context.yes) {
        if (verb === 'disable') await tellLosing(context, id)
        await confirm(`${verb} ${username}?`)
      }
      const made = await context.api.post<{ sessions?: string } | Pending>(`/api/v1/admin/users/${id}/${verb}`, {
        reason,
      })
      if (isPending(made)) return waiting(context, made)
      context.out.note(`${username} is ${verb}d.${endingOf(made)}`)
    },
  }
}

/** What open gates lose with the account, or why that is not known: an outage must not keep a leaver in. */
const tellLosing = async ({ api, out }: Context, user_id: string): Promise<void> => {
  const { items } = await api
    .get<Losing>(withQuery('/api/v1/gates/losing', { user_id }))
    .catch((error: Error): Losing => {
      out.note(`The effect on open gates cannot be read now: ${error.message}`)
      return { items: [] }
    })
  for (const { question, operation_title, blocked, voters_left, votes_lost } of harmless(items)) {
    const vote = votes_lost > 0 ? ', and a vote no longer counts' : ''
    const left = blocked ? 'too few people would be left to approve' : `${voters_left} could still vote on`
    out.note(`${left} "${question}" of "${operation_title}"${vote}.`)
  }
}

/** The account with this id, or with this name as a sign-in takes it. */
export const find = async ({ api }: Context, given: string): Promise<User> => {
  if (isWholeId(given)) return api.get<User>(`/api/v1/admin/users/${given}`)
  const users = await api.list<User>('/api/v1/admin/users', { q: given.normalize('NFKC'), page_size: '500' }, true)
  const found = users.find(({ username }) => foldUsername(username) === foldUsername(given))
  if (found) return found
  throw missing(`No account is called ${JSON.stringify(given)}.`)
}
