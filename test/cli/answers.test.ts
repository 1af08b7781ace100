import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { showLoss } from '../../apps/cli/import/run/report.ts'
import { COMMANDS } from '../../apps/cli/run.ts'
import { createApi } from '../../apps/cli/session/api.ts'
import { isList } from '../../apps/cli/terminal/repeat.ts'
import { selectionOf } from '../../apps/cli/terminal/select.ts'
import { CLI } from '../support/cli.ts'
import { until } from '../support/until.ts'

/** The client against answers that a healthy platform seldom gives. */
vi.setConfig({ testTimeout: 120_000 })

const home = mkdtempSync(join(tmpdir(), 'signalbox-answers-'))
afterAll(() => rmSync(home, { recursive: true, force: true }))

const ID = '0195f0c2-7c1d-7e38-9d55-2b1c8a4f7e10'
const OTHER = '0195f0c2-7c1d-7e38-9d55-2b1c8a4f7e20'

const started = (args: string[], env: Record<string, string> = {}) => {
  const child = spawn(process.execPath, [...CLI, ...args], {
    cwd: home,
    env: { PATH: process.env.PATH, XDG_CONFIG_HOME: home, NO_COLOR: '1', SIGNALBOX_TOKEN: 't', ...env },
  })
  child.stdin.end()
  const ran = { code: null as number | null, out: '', err: '' }
  child.stdout.on('data', (chunk: Buffer) => (ran.out += chunk))
  child.stderr.on('data', (chunk: Buffer) => (ran.err += chunk))
  const ended = new Promise<typeof ran>((resolve) => child.on('close', (code) => resolve(Object.assign(ran, { code }))))
  return { child, ran, ended }
}
const signalbox = (args: string[], env?: Record<string, string>) => started(args, env).ended

type Asked = { method: string; path: string; key: string | undefined; body: string }
/** A server whose answer is a body, or undefined: then the connection ends. */
const serving = async (
  answer: (asked: Asked, res: ServerResponse) => object | undefined | 'held',
  use: (env: { SIGNALBOX_URL: string }, asked: Asked[]) => Promise<void>,
) => {
  const all: Asked[] = []
  const server = createServer(async (req: IncomingMessage, res) => {
    const key = req.headers['idempotency-key'] as string | undefined
    const asked = { method: req.method ?? '', path: req.url ?? '', key, body: await text(req) }
    all.push(asked)
    const body = answer(asked, res)
    if (body === 'held') return
    if (body === undefined) return void req.socket.destroy()
    res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    await use({ SIGNALBOX_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }, all)
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

describe('a command whose answer was lost', () => {
  const changes = join(home, 'changes.json')
  writeFileSync(changes, '[]')
  const based = join(home, 'based.json')
  writeFileSync(based, '{"base_revision": 3, "changes": []}')
  const PATCH = { diff_graph: { added: [], changed: [], removed: [], added_gates: [], removed_gates: [] } }
  const EFFECT = { ...PATCH, held_nodes: [], rearmed_gates: [], from: 'failed' }
  const DONE = {
    state: 'running',
    status: 'awaiting_approval',
    ...{ patch_id: ID, operation_id: ID, intervention: { intervention_id: ID, status: 'applied' } },
  }

  it.each<[what: string, args: string[], again: string[]]>([
    ['op retry', ['op', 'retry', 'a', '--op', ID], []],
    ['op intervene', ['op', 'intervene', 'a', '--op', ID, '--type', 'skip'], []],
    ['patch propose', ['patch', 'propose', '--op', ID, '-f', changes], ['-f', based]],
  ])('is repeated as the same request by its key: %s', async (_, args, again) => {
    let lost = false
    const answer = ({ method, body }: Asked) => {
      if (method === 'GET') return { plan_revision: lost ? 4 : 3 }
      if (body.includes('"dry_run":true')) return { effect: EFFECT }
      if (lost) return DONE
      lost = true
    }
    await serving(answer, async (env, asked) => {
      const line = [...args, '--reason', 'r', '--yes']
      const first = await signalbox(line, env)
      const key = /--idempotency-key ([0-9a-f-]{36})/.exec(first.err)?.[1] ?? ''
      expect(first, first.err).toMatchObject({ code: 1 })
      const sent = asked.filter(({ method }) => method === 'POST').at(-1)
      asked.length = 0
      expect(await signalbox([...line, ...again, '--idempotency-key', key], env)).toMatchObject({ code: 0 })
      expect(asked.filter(({ method }) => method === 'POST')).toEqual([{ ...sent, key }])
      if (again.length === 0) return
      expect(first.err).toContain('base_revision 3')
      asked.length = 0
      const unbased = await signalbox([...line, '--idempotency-key', key], env)
      expect(unbased).toMatchObject({ code: 2, err: expect.stringContaining('base_revision is missing') })
      expect(asked).toEqual([])
    })
  })
})

describe('--dry-run', () => {
  it.each([['logout'], ['login', 'eva'], ['context', 'set', 'a'], ['context', 'use', 'a'], ['context', 'remove', 'a']])(
    'of a command that acts here is refused, and changes nothing: %s %s',
    async (...words) => {
      await serving(
        () => ({}),
        async ({ SIGNALBOX_URL }, asked) => {
          const kept = signedIn(SIGNALBOX_URL)
          const line = [...words.filter((word) => word !== undefined), '--dry-run', '--url', SIGNALBOX_URL]
          expect(await signalbox(line, { SIGNALBOX_TOKEN: '' })).toMatchObject({
            code: 2,
            err: 'This command has no --dry-run. Nothing was changed.\n',
          })
          expect(readFileSync(CREDENTIALS, 'utf8')).toBe(kept)
          expect(asked).toEqual([])
        },
      )
    },
  )
})

const CREDENTIALS = join(home, 'signalbox/credentials.json')
const signedIn = (url: string): string => {
  mkdirSync(join(home, 'signalbox'), { recursive: true, mode: 0o700 })
  const entry = { username: 'eva', access_token: 't', refresh_token: 'r', expires_at: Date.now() + 3_600_000 }
  const kept = JSON.stringify({ [url]: entry })
  writeFileSync(CREDENTIALS, kept, { mode: 0o600 })
  return kept
}

it('a sign-out without a server ends here, and says where the session can still be ended', async () => {
  const url = 'http://127.0.0.1:2'
  signedIn(url)
  const { code, err } = await signalbox(['logout', '--url', url], { SIGNALBOX_TOKEN: '' })
  expect({ code, err }).toEqual({
    code: 1,
    err: expect.stringMatching(
      /^Signed out here, but .* did not answer: .*: end it at http:\S+\/settings\/sessions\.\n$/,
    ),
  })
  expect(err).not.toContain('--idempotency-key')
  expect(JSON.parse(readFileSync(CREDENTIALS, 'utf8'))).toEqual({})
})

const EVIL = '\u001b]0;owned\u0007\u001b[2Jhost'

describe('text of others', () => {
  const operation = { operation_id: ID, title: EVIL, open_gates: [], blocked_on: [] }
  it.each([
    [
      'a blocked node',
      { ...operation, status: 'blocked', blocked_on: [{ kind: 'failed_node', id: 'a', message: EVIL }] },
    ],
    ['an end', { ...operation, status: 'failed', end_reason: EVIL }],
  ])('cannot control the terminal through op wait: %s', async (_, body) => {
    await serving(
      () => body,
      async (env) => {
        const { out } = await signalbox(['op', 'wait', ID], env)
        expect(out).toContain('host')
        expect(out).not.toMatch(CONTROL)
      },
    )
  })

  it('cannot control it through the losses of an import', () => {
    const said: string[] = []
    const field = { fate: 'lost', kind: EVIL, field: EVIL, reason: EVIL, count: 1, example: EVIL }
    const ledger = { fields: () => [field], leftOut: () => [{ kind: EVIL, reason: EVIL, count: 1, lost: true }] }
    showLoss((line) => said.push(line), { ledger } as never)
    expect(said.join('\n')).toContain('host')
    expect(said.join('\n')).not.toMatch(CONTROL)
  })
})
// biome-ignore lint/suspicious/noControlCharactersInRegex: these must not arrive
const CONTROL = /[\u0007\u001b]/

it('Ctrl-C ends op watch at once, although a request waits for news', async () => {
  const operation = { operation_id: ID, status: 'running', title: 'move', open_gates: [], blocked_on: [] }
  const answer = ({ path }: Asked) => {
    if (!path.includes('/timeline')) return path.includes('/nodes') ? { items: [] } : operation
    return path.includes('wait_ms=0') ? { events: [], last_seq: 0 } : 'held'
  }
  await serving(answer, async (env, asked) => {
    const { child, ended } = started(['op', 'watch', ID], env)
    await until(() => asked.some(({ path }) => /wait_ms=[1-9]/.test(path)), { what: 'the request that waits' })
    const from = Date.now()
    child.kill('SIGINT')
    expect(await ended).toMatchObject({ code: 130, err: expect.stringContaining('The operation continues.') })
    // The request itself would wait for half a minute.
    expect(Date.now() - from).toBeLessThan(20_000)
  })
})

describe('a value that no request can carry', () => {
  it.each<[what: string, args: string[]]>([
    ['a password in the address', ['inbox', '--url', 'https://eva:geheim@a.example']],
    ['a query in the address', ['inbox', '--url', 'https://a.example/?token=geheim']],
    ['a space after the address', ['inbox', '--url', 'https://a.example ']],
    ['a key of other letters', ['api', 'POST', '/v1/intents', '--idempotency-key', 'ключ']],
    ['an etag in curly quotes', ['api', 'PATCH', '/v1/resources/a', '--if-match', '“3”']],
  ])('is refused in one line: %s', async (_, args) => {
    const { code, err } = await signalbox(args)
    expect({ code, err }).toEqual({ code: 2, err: expect.stringMatching(/^.+\n$/) })
    expect(err).not.toContain('geheim')
  })
})

describe('the ending of an id', () => {
  const items = [ID, OTHER].map((id) => ({ intent_id: id, latest_plan_id: id.replace(/^0/, '1'), operation_id: id }))
  it.each<[what: string, args: string[], said: string]>([
    ['of two plans', ['plan', 'show', '0'], '2 ids end with "0".'],
    ['that is empty', ['gate', 'list', '--op', ''], 'The id is empty.'],
  ])('%s is refused', async (_, args, said) => {
    await serving(
      () => ({ items: said.startsWith('2') ? items : items.slice(0, 1), next_page_token: null }),
      async (env) => {
        expect(await signalbox([...args, '--yes'], env)).toMatchObject({ code: 2, err: expect.stringContaining(said) })
      },
    )
  })
})

it('the help of agent list selects from the list that the command prints', async () => {
  const [, example = ''] = COMMANDS.find(({ name }) => name === 'agent list')?.examples ?? []
  const select = await selectionOf(/--select (["'])(.*)\1$/.exec(example)?.[2])
  expect(await select?.([{ agent: 'a', status: 'silent' }])).toBe('a')
})

it('a renewed session is not looked for where a token is given', async () => {
  const get = () => expect.fail('the credentials were read')
  const credentials = { get, alone: (act: () => unknown) => act() } as never
  await createApi({ url: 'http://localhost:1', credentials, token: 't', idempotency_key: undefined }).renew()
})

it('a list of sessions names clients whole, and machines that signed in by a code, where a script reads it', async () => {
  const user_agent = 'a'.repeat(100)
  await serving(
    () => ({ items: [{ id: ID, mode: 'json', user_agent, metadata: { host: 'ci-7' } }], next_page_token: null }),
    async (env) => expect((await signalbox(['session', 'list'], env)).out).toContain(`json ${user_agent} ci-7`),
  )
})

it('--watch repeats every command that only lists', () => {
  const lists = ['user changes', 'user unlinked', 'machine refusals', 'notify log', 'resource search']
  expect(COMMANDS.filter(isList).map(({ name }) => name)).toEqual(expect.arrayContaining(lists))
  expect(COMMANDS.filter(isList).map(({ name }) => name)).not.toContain('op logs')
})
