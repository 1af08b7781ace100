import type { Static } from 'typebox'
import type { Me } from '../../shared/contracts/operations/events.ts'
import type { SessionView } from '../../shared/contracts/session/sessions.ts'
import { type Command, type Context, inHeader, readDocument, readText, text, type Values, wholeId } from '../command.ts'
import { missing, usageError } from '../errors.ts'
import type { Api } from '../session/api.ts'
import { codeByBrowser } from '../session/browser.ts'
import type { DeviceCodes } from '../session/device.ts'
import { isApiKey } from '../session/machine.ts'
import type { AskCode } from '../session/sign-in.ts'
import { ask, readPassword } from '../terminal/ask.ts'
import { minute, short, zoned } from '../terminal/output.ts'

type Session = Static<typeof SessionView>

/** The named provider, or the only one. */
const providerOf = async ({ open }: Pick<Api, 'open'>, given: string | undefined): Promise<string> => {
  const { items } = await open<{ items: { id: string }[] }>('/v1/providers')
  const ids = items.map(({ id }) => id)
  const [found, ...others] = given === undefined ? ids : ids.filter((id) => id === given)
  if (found !== undefined && others.length === 0) return found
  if (ids.length === 0) throw missing('This installation has no identity provider.', 'Run: signalbox login NAME')
  const remedy = `Name one of: ${ids.join(', ')}`
  throw found === undefined
    ? missing(`No identity provider is called ${JSON.stringify(given)}.`, remedy)
    : usageError('There are several identity providers.', remedy)
}

const invitation = ({ user_code, verification_uri, verification_uri_complete, expires_in }: DeviceCodes): string =>
  [
    `Open ${verification_uri} in a browser on any machine and enter the code ${user_code}`,
    `or open ${verification_uri_complete}`,
    `Give the code to no one. It expires in ${Math.round(expires_in / 60)} min. Waiting …`,
  ].join('\n')

const keyIn = (file: string): string => {
  const key = readText(file).trim()
  if (isApiKey(key)) return key
  throw usageError(`${file} does not contain an API key, which starts with sbk_.`)
}

const askCode: AskCode = (again) =>
  ask(again ? 'The code was refused. Next code:' : 'code of your authenticator app:', 'Sign in at a terminal.')

/** Signs in as the options say; returns the name of the user. */
const signIn = async ({ api, out }: Context, given: string | undefined, values: Values): Promise<string> => {
  if (values.sso === true) {
    const show = (address: string) =>
      out.note(`Sign in with a browser on this machine:\n${address}\nNo browser here? signalbox login --device`)
    return api.redeem(await codeByBrowser(api.url, await providerOf(api, given), show))
  }
  if (values.device === true) return api.loginDevice((codes) => out.note(invitation(codes)))
  const file = text(values, 'machine')
  if (file !== undefined) return api.loginMachine(keyIn(file))
  const name = given ?? (await ask('name:', 'signalbox login NAME'))
  await api.login(name, await readPassword(values['password-stdin'] === true), askCode)
  return name
}

/** The signed-in person, and access to every endpoint that has no command. */
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']

export const sessionCommands: Command[] = [
  {
    name: 'login',
    takes: '[NAME]',
    about: 'Signs in and keeps the session in the credentials file.',
    examples: [
      'login eva',
      'login eva --url https://signalbox.example.com',
      'login eva --password-stdin < password.txt',
      'login --sso',
      'login --sso corp',
      'login --device',
      'login --machine key.txt',
    ],
    options: {
      'password-stdin': { type: 'boolean', about: 'read the password from stdin' },
      sso: { type: 'boolean', about: 'sign in through a provider in the browser; NAME is then its id' },
      device: { type: 'boolean', about: 'sign in by a code that you enter in a browser on another machine' },
      machine: { type: 'string', value: 'FILE', about: 'sign in as the machine whose API key is in this file' },
    },
    run: async (context, [given], values) => {
      const name = await signIn(context, given, values)
      context.out.note(`Signed in at ${context.api.url} as ${name}.`)
    },
  },
  {
    name: 'logout',
    about: 'Ends the session, here and on the server.',
    examples: ['logout', 'logout --context prod'],
    run: async ({ api, out }) => {
      await api.logout()
      out.note('Signed out.')
    },
  },
  {
    name: 'whoami',
    about: 'Shows who is signed in, with roles and groups.',
    examples: ['whoami', 'whoami --select permissions -o json'],
    run: async ({ api, out }) => {
      const me = await api.get<Static<typeof Me>>('/api/v1/me')
      out.one(me, 'username', ({ username, roles, groups, counts }) => [
        `${username}   roles ${roles.join(', ') || 'none'}   groups ${groups.join(', ') || 'none'}`,
        `Waiting for you: gates ${counts.gates_mine}, patches ${counts.patches_mine}, failures ${counts.failures_mine}.`,
      ])
    },
  },
  {
    name: 'api',
    takes: 'METHOD PATH',
    about: 'Calls any endpoint. Paths below /api start with /v1/; -d takes a file of JSON or YAML, - is stdin.',
    examples: [
      'api GET /v1/operations',
      'api POST /v1/intents -d intent.yaml',
      `api PATCH /v1/resources/eu1-web-01 -d change.json --if-match '"3"'`,
    ],
    options: {
      data: { type: 'string', short: 'd', value: 'FILE', about: 'the body: a file of JSON or YAML; - is stdin' },
      'if-match': { type: 'string', value: 'ETAG', about: 'the version that the request is based on' },
    },
    run: async ({ api, out }, [method = 'GET', path = ''], values) => {
      const file = text(values, 'data')
      if (!METHODS.includes(method.toUpperCase()))
        throw usageError(`METHOD is one of ${METHODS.join(', ')}, not ${method}.`, 'See: signalbox api --help')
      if (!path.startsWith('/'))
        throw usageError('PATH begins with /, such as /v1/operations.', 'See: signalbox api --help')
      if (file !== undefined && /^(get|head)$/i.test(method))
        throw usageError(`${method.toUpperCase()} requests take no --data.`, 'See: signalbox api --help')
      const if_match = inHeader(values, 'if-match')
      const data = file === undefined ? undefined : readDocument(file.replace(/^@/, ''))
      const { body } = await api.send(method.toUpperCase(), path.startsWith('/v1/') ? `/api${path}` : path, data, {
        ...(if_match !== undefined && { 'if-match': if_match }),
        ...(/^patch \/(api\/)?v1\/resources\/[^/]+$/i.test(`${method} ${path.split('?')[0]}`) && {
          'content-type': `application/${Array.isArray(data) ? 'json' : 'merge'}-patch+json`,
        }),
      })
      const json = JSON.stringify(body, null, 2)
      if (typeof body === 'string') out.print(body)
      else
        out.one(
          body,
          () => json,
          () => [json],
        )
    },
  },
  {
    name: 'session list',
    about: 'Lists your own sessions.',
    examples: ['session list'],
    run: async ({ api, out, all }) => {
      const sessions = await api.list<Session>('/api/v1/sessions', {}, all)
      out.list(sessions, 'id', [
        ['id', ({ id }) => short(id)],
        [zoned('began'), ({ created_at }) => minute(created_at)],
        ['last used', ({ last_used_at }) => minute(last_used_at)],
        ['from', ({ ip_address }) => ip_address],
        ['with', ({ user_agent, mode, metadata }) => [mode, user_agent, metadata?.host].filter(Boolean).join(' ')],
        ['', ({ current }) => (current ? 'this one' : '')],
      ])
    },
  },
  {
    name: 'session revoke',
    takes: 'SESSION',
    about: 'Ends one of your sessions.',
    examples: ['session revoke 77b0aa'],
    run: async (context, [given = '']) => {
      const id = await wholeId<Session>(context, given, '/api/v1/sessions', (session) => session.id)
      await context.api.send('DELETE', `/api/v1/sessions/${id}`)
      context.out.note('Ended.')
    },
  },
]
