import { spawn } from 'node:child_process'
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { spawn as spawnTerminal } from '@lydell/node-pty'
import { afterAll, describe, expect, it } from 'vitest'
import { parseFilter } from '../../apps/catalog/document/filter.ts'
import { find } from '../../apps/cli/commands/user.ts'
import { EXIT, failure } from '../../apps/cli/errors.ts'
import { parseLine } from '../../apps/cli/program.ts'
import { COMMANDS as COMMAND_LIST } from '../../apps/cli/run.ts'
import { urlOf } from '../../apps/cli/session/contexts.ts'
import { writePrivate } from '../../apps/cli/session/private-file.ts'
import { selectionOf } from '../../apps/cli/terminal/select.ts'
import { compileCacheDir } from '../../apps/platform/run/compile-cache.ts'
import { CLI } from '../support/cli.ts'
import { until } from '../support/until.ts'

const home = mkdtempSync(join(tmpdir(), 'signalbox-program-'))
afterAll(() => rmSync(home, { recursive: true, force: true }))

type Ran = { code: number | null; out: string; err: string }
const signalbox = (...args: string[]): Promise<Ran> => spawned(args)
const spawned = (args: string[], env: Record<string, string> = {}, input = ''): Promise<Ran> =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, [...CLI, ...args], {
      cwd: home,
      env: {
        PATH: process.env.PATH,
        XDG_CONFIG_HOME: home,
        NO_COLOR: '1',
        NODE_COMPILE_CACHE: compileCacheDir(),
        ...env,
      },
    })
    const ran: Ran = { code: null, out: '', err: '' }
    child.stdout.on('data', (chunk: Buffer) => (ran.out += chunk))
    child.stderr.on('data', (chunk: Buffer) => (ran.err += chunk))
    child.on('close', (code) => resolve({ ...ran, code }))
    child.stdin.end(input)
  })

/** Every command of the client, by noun. */
const COMMANDS: Record<string, string> = {
  '': 'login logout whoami doctor completion open api inbox',
  context: 'list set use remove',
  gate: 'list show approve reject',
  intent: 'create list show',
  plan: 'preview show start',
  op: 'list show watch wait logs graph pause resume cancel retry intervene',
  patch: 'list show propose approve reject',
  evidence: 'list export keys verify',
  resource: 'list show create update relate move retire history relations search impact diff',
  type: 'list show',
  topology: 'list show',
  capability: 'list show',
  import: 'netbox kubernetes terraform csv json',
  session: 'list revoke',
  totp: 'show set remove',
  audit: 'list export',
  user: 'list create grant reset disable enable unlock changes confirm reject withdraw half',
}
const namedIn = (help: string) => [...help.matchAll(/^ {2}([a-z][a-z-]*)(?= )/gm)].map(([, name]) => name)

/** The words of an example, as a shell passes them: without quotes and without redirections. */
const wordsOf = (line: string): string[] =>
  [...line.replace(/ (<|>>?) \S+/g, '').matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(
    ([, single, double, bare]) => single ?? double ?? bare ?? '',
  )

describe('help', () => {
  it.each(Object.entries(COMMANDS))('names the commands of "%s"', async (noun, verbs) => {
    const { code, out } = await (noun === '' ? signalbox('--help') : signalbox('help', noun))
    expect(code).toBe(0)
    expect(namedIn(out)).toEqual(expect.arrayContaining(verbs.split(' ')))
  })

  it('of one command describes each option', async () => {
    const { code, out } = await signalbox('op', 'cancel', '--help')
    expect(code).toBe(0)
    expect(out.replace(/\s+/g, ' ')).toContain(
      '--mode <MODE> how to cancel (choices: "graceful", "compensate", "force")',
    )
  })

  it.each(COMMAND_LIST.map((command) => [command.name, command] as const))(
    'of "%s" has examples that parse, also by the API if they filter',
    (name, { examples }) => {
      expect(examples.length).toBeGreaterThan(0)
      for (const example of examples) {
        const line = parseLine(COMMAND_LIST, wordsOf(example), '0')
        expect(line === 'shown' ? line : line.command.name, example).toBe(name)
        const filter = line === 'shown' ? undefined : line.values.filter
        if (typeof filter === 'string') expect(() => parseFilter(filter), example).not.toThrow()
      }
    },
  )

  it('of a noun describes it, and of one command is the same in either spelling', async () => {
    const { out } = await signalbox('--help')
    const nouns = new Set(COMMAND_LIST.map(({ name }) => name.split(' ')[0] ?? ''))
    for (const noun of nouns) expect(out, noun).toMatch(new RegExp(`^ {2}${noun}( \\S+)* {2,}\\S`, 'm'))
    expect(await signalbox('help', 'op', 'list')).toEqual(await signalbox('op', 'list', '--help'))
  })

  it('names the version', async () => {
    expect(await signalbox('--version')).toMatchObject({ code: 0, out: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) })
  })
})

describe('options before the command', () => {
  it.each<[args: string[], name: string, values: object]>([
    [['--url', 'http://a', 'whoami'], 'whoami', { url: 'http://a' }],
    [['--url=http://a', '-y', 'op', 'list', '--status', 'running'], 'op list', { url: 'http://a', yes: true }],
    [['-ojson', 'op', 'list', '--status', 'running'], 'op list', { output: 'json', status: 'running' }],
    [['--url', 'http://a', 'whoami', '--url', 'http://b'], 'whoami', { url: 'http://b' }],
    [['--url', 'http://a', 'context', 'set', 'mars'], 'context set', { url: 'http://a' }],
  ])('count as after it: %j', (args, name, values) => {
    expect(parseLine(COMMAND_LIST, args, '0')).toMatchObject({ command: { name }, values })
  })

  it.each<[args: string[], said: string]>([
    [['--url', 'http://a'], 'There is no command after the options. See: signalbox --help'],
    [['--url', 'http://a', 'op'], '"op" needs one of the commands above.'],
    [['--url', 'http://a', 'gat', 'list'], "Unknown command 'gat'. Did you mean gate?"],
    [['--urll', 'http://a', 'whoami'], "Unknown option '--urll'."],
  ])('do not hide the fault of a line: %j', async (args, said) => {
    expect(await signalbox(...args)).toMatchObject({ code: 2, err: expect.stringContaining(said) })
  })
})

describe('a line that is wrong', () => {
  it.each<[what: string, args: string[], said: string]>([
    ['a kind of intervention that is none', ['op', 'intervene', 'a', '--type', 'jump'], 'Allowed choices are skip,'],
    ['an overlap that is no number', ['schedule', 'secret', 'a', '--overlap', ''], '--overlap takes a whole number'],
    ['an overlap that is no number', ['notify', 'secret', 'a', '--next', '--overlap', 'abc'], 'whole number, not abc.'],
    ['an unknown noun', ['gat', 'list'], "Unknown command 'gat'. Did you mean gate?"],
    ['an unknown verb', ['op', 'lst'], "Unknown command 'lst'. Did you mean list?"],
    ['an unknown option', ['op', 'list', '--statuss', 'x'], "Unknown option '--statuss'. Did you mean --status?"],
    ['a value that is none of the allowed', ['op', 'list', '--status', 'odd'], 'Allowed choices are queued, running'],
    ['a missing argument', ['gate', 'show'], "Missing required argument 'GATE'."],
    ['an argument too many', ['whoami', 'eva'], 'Too many arguments'],
    ['a noun without a verb', ['op'], '"op" needs one of the commands above.'],
    ['watching what is no list', ['whoami', '--watch'], '--watch repeats lists; whoami is not a list.'],
    ['two ways to print', ['op', 'list', '--jsonl', '-o', 'yaml'], '--jsonl prints JSON: leave out -o yaml.'],
    ['an expression that cannot be read', ['whoami', '--select', 'a.'], '--select is not a JSONata expression'],
    ['a time zone that does not exist', ['whoami', '--zone', 'Mars'], '--zone takes a name such as Europe/Berlin'],
    ['a context without an address', ['context', 'set', 'mars'], '--url takes an address such as'],
    ['help for no command', ['help', 'op', 'lst'], 'There is no command "op lst". See: signalbox --help'],
    ['a path that is none', ['api', 'GET', 'v1/me'], 'PATH begins with /'],
    ['a method that is none', ['api', 'FOO', '/v1/me'], 'METHOD is one of GET, HEAD,'],
    ['a context with an empty address', ['context', 'set', 'mars', '--url', ''], 'signalbox.example.com.'],
    ['no password in stdin', ['login', 'eva', '--password-stdin'], 'stdin has no password in its first line.'],
    ['an empty id', ['resource', 'show', ''], 'RESOURCE is empty.'],
    ['a format as an option', ['op', 'list', '--json'], "Unknown option '--json'. Did you mean -o json?"],
    ['a body for a read', ['api', 'GET', '/v1/me', '-d', '-'], 'GET requests take no --data.'],
    [
      'a context whose name is a path',
      ['context', 'set', '../mars', '--url', 'http://127.0.0.1:9'],
      'A context name consists of',
    ],
  ])('with %s exits 2 and names the next step', async (_, args, said) => {
    const { code, err, out } = await signalbox(...args)
    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(said) })
    if (args.length > 1) expect(out).toBe('')
  })

  it.each([
    ['whoami', '--context', 'mars'],
    ['context', 'use', 'mars'],
    ['context', 'remove', 'mars'],
  ])('with an unknown context exits 1: %s', async (...args) => {
    const { code, err } = await signalbox(...args)
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining('There is no context "mars"') })
  })
})

/** Something that listens at the address and is not Signalbox. */
const listening = async (status: number, type: string, body: string, use: (url: string) => Promise<void>) => {
  const server = createServer((req, res) => {
    req.resume().on('end', () => res.writeHead(status, { 'content-type': type }).end(body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  } finally {
    server.close()
  }
}

describe('a file of YAML', () => {
  it.each([
    ['an anchor that holds itself', 'a: &a [*a]', 'circular'],
    ['a tag that nobody knows', '!!js/function x', 'Unresolved tag'],
    [
      'anchors that unfold without end',
      `${'abcdefghij'.split('').reduce((text, key, i, keys) => `${text}${key}: &${key} [${Array(9).fill(i === 0 ? 'x' : `*${keys[i - 1]}`)}]\n`, '')}`,
      'alias',
    ],
  ])('with %s is refused before any request', async (_, document, said) => {
    const file = join(home, 'document.yaml')
    writeFileSync(file, document)
    const { code, err } = await spawned(['intent', 'create', '-f', file], { SIGNALBOX_TOKEN: 'none' })
    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(`is neither YAML nor JSON: `) })
    expect(err).toContain(said)
    expect(err.trim().split('\n')).toHaveLength(1)
  })
})

it('output that cannot be written ends with one line', { skip: !existsSync('/dev/full') }, async () => {
  const full = openSync('/dev/full', 'w')
  const child = spawn(process.execPath, [...CLI, '--help'], { stdio: ['ignore', full, 'pipe'] })
  let err = ''
  child.stderr?.on('data', (chunk: Buffer) => (err += chunk))
  const code = await new Promise((resolve) => child.on('close', resolve))
  closeSync(full)
  expect({ code, err }).toEqual({ code: 1, err: expect.stringMatching(/^The output cannot be written: ENOSPC.*\n$/) })
})

describe('a newcomer', () => {
  const inbox = (...more: string[]) => spawned(['inbox', ...more], { SIGNALBOX_TOKEN: 'none' })

  it('gets the fault and the next step in one line: not signed in, no server, no address, an unencrypted address', async () => {
    expect(await signalbox('inbox')).toMatchObject({
      code: 9,
      err: 'You are not signed in at http://localhost:8080. Run: signalbox login NAME\n',
    })
    const { code, err } = await inbox('--url', 'http://127.0.0.1:2')
    expect({ code, err }).toEqual({
      code: 1,
      err: expect.stringMatching(
        /^http:\/\/127\.0\.0\.1:2 did not answer: .*ECONNREFUSED.*\. Start the platform, or name .*\n$/,
      ),
    })
    expect(await inbox('--url', 'prod')).toMatchObject({
      code: 2,
      err: expect.stringMatching(/^"prod" is not .* Name one .*\n$/),
    })
    expect(await inbox('--url', 'http://example.com')).toMatchObject({
      code: 2,
      err: expect.stringMatching(/ https .*\n$/),
    })
    expect(await signalbox('gate', 'list')).toMatchObject({
      code: 2,
      err: '--op is missing. See: signalbox gate list --help\n',
    })
  })

  it('learns that the address belongs to another service', async () => {
    await listening(200, 'text/html', '<html></html>', async (url) => {
      expect(await inbox('--url', url)).toMatchObject({ code: 1, err: expect.stringContaining('is a web page.') })
      const login = await spawned(['login', 'eva', '--url', url, '--password-stdin'], {}, 'a password')
      expect(login).toMatchObject({ code: 1, err: expect.stringMatching(/^http.*\n$/) })
    })
    for (const type of ['text/plain', 'application/json'])
      await listening(404, type, '"no"', async (url) => {
        const told = {
          code: 1,
          err: expect.stringContaining('answered 404 without an explanation. It may not be a Signalbox server.'),
        }
        expect(await inbox('--url', url)).toMatchObject(told)
        expect(await spawned(['login', 'eva', '--url', url, '--password-stdin'], {}, 'a password')).toMatchObject(told)
      })
  })

  it('learns it even if the errors of that server look like ours', async () => {
    const foreign = '{"code":5,"message":"Not Found","details":[],"violations":3}'
    await listening(404, 'application/json', foreign, async (url) => {
      const told = expect.stringContaining('answered 404 without an explanation. It may not be a Signalbox server.')
      expect(await inbox('--url', url)).toMatchObject({ code: 1, err: told })
    })
  })

  it('learns that a token is invalid, without seeing the token', async () => {
    const { code, err } = await spawned(['inbox'], { SIGNALBOX_TOKEN: 'geheim\nnis' })
    expect({ code, err }).toEqual({
      code: 2,
      err: expect.stringMatching(/^SIGNALBOX_TOKEN contains .* Set it again\.\n$/),
    })
    expect(err).not.toMatch(/geheim|nis\b/)
  })

  it('whose command got no answer learns how to repeat it without a second effect', async () => {
    await listening(200, 'application/json', '{', async (url) => {
      const { code, err } = await spawned(['api', 'POST', '/v1/intents', '--url', url], { SIGNALBOX_TOKEN: 'none' })
      expect({ code, err }).toEqual({
        code: 1,
        err: expect.stringMatching(/Repeat it with --idempotency-key [0-9a-f-]{36}\n$/),
      })
    })
  })
})

describe('watching a list', () => {
  it('prints it again when it changes, only new lines with --jsonl, and continues after an outage', async () => {
    let names = ['a']
    let away = false
    const server = createServer((req, res) => {
      if (away) return void req.socket.destroy()
      const items = names.map((type_key) => ({ type_key, title: type_key, actions: [] }))
      res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ items, next_page_token: null }))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const child = spawn(process.execPath, [...CLI, 'type', 'list', '--watch', '--jsonl'], {
      env: { PATH: process.env.PATH, XDG_CONFIG_HOME: home, SIGNALBOX_URL: url, SIGNALBOX_TOKEN: 't' },
    })
    let out = ''
    let err = ''
    child.stdout.on('data', (chunk: Buffer) => (out += chunk))
    child.stderr.on('data', (chunk: Buffer) => (err += chunk))
    const seen = () => [...out.matchAll(/"type_key":"(\w)"/g)].map(([, name]) => name).join('')
    try {
      await until(() => seen() === 'a', { what: 'the first list' })
      away = true
      await until(() => err.includes('Trying again until it answers.'), { what: 'the outage' })
      names = ['a', 'b']
      away = false
      await until(() => seen() === 'ab', { what: 'the new line' })
      expect(err).toContain('It answers again.')
    } finally {
      child.kill()
      server.close()
    }
  }, 60_000)
})

describe('op wait', () => {
  it('goes on when the connection is lost after its first answer', async () => {
    let asked = 0
    const operation = { title: 'move', open_gates: [], blocked_on: [] }
    const server = createServer((req, res) => {
      asked += 1
      if (asked === 2 || asked === 3) return void req.socket.destroy()
      const status = asked === 1 ? 'running' : 'succeeded'
      res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ ...operation, status }))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    try {
      const id = '0195f0c2-7c1d-7e38-9d55-2b1c8a4f7e10'
      const waited = await spawned(['op', 'wait', id], { SIGNALBOX_URL: url, SIGNALBOX_TOKEN: 't' })
      expect(waited).toMatchObject({ code: 0, out: expect.stringContaining('move') })
    } finally {
      server.close()
    }
  }, 60_000)
})

it('an account is found by its id, and by its name however that was typed', async () => {
  const id = '0195f0c2-7c1d-7e38-9d55-2b1c8a4f7e10'
  const api = {
    get: async (path: string) => ({ id: path.split('/').at(-1), username: 'eva' }),
    list: async (_path: string, { q }: { q: string }) =>
      [{ id: '2', username: 'jörg'.normalize('NFC') }].filter(({ username }) => username.includes(q.toLowerCase())),
  }
  expect((await find({ api } as never, id)).username).toBe('eva')
  expect((await find({ api } as never, 'JÖRG'.normalize('NFD'))).id).toBe('2')
})

it('what open gates lose with an account is said to be unknown if it cannot be read', async () => {
  const get = async (path: string) => {
    if (path.includes('/gates/losing')) throw failure(EXIT.error, 'Who may decide cannot be read in full right now.')
    return { id: path.split('/').at(-1), username: 'eva' }
  }
  const notes: string[] = []
  const context = { api: { get }, out: { note: (line: string) => notes.push(line) }, yes: false }
  const disable = COMMAND_LIST.find(({ name }) => name === 'user disable')
  await expect(
    disable?.run(context as never, ['0195f0c2-7c1d-7e38-9d55-2b1c8a4f7e10'], { reason: 'left' }),
  ).rejects.toThrow()
  expect(notes).toEqual([
    'The effect on open gates cannot be read now: Who may decide cannot be read in full right now.',
  ])
})

describe('contexts', () => {
  it('name addresses; the first one added is the current one until another is used', async () => {
    await signalbox('context', 'set', 'test', '--url', 'http://127.0.0.1:1/')
    await signalbox('context', 'set', 'prod', '--url', 'https://signalbox.example.com')
    const env = { XDG_CONFIG_HOME: home }
    expect(urlOf({ url: undefined, context: undefined }, env)).toBe('http://127.0.0.1:1')
    await signalbox('context', 'use', 'prod')
    expect(urlOf({ url: undefined, context: undefined }, env)).toBe('https://signalbox.example.com')
    expect(JSON.parse((await signalbox('context', 'list', '-o', 'json')).out)).toEqual([
      { name: 'test', url: 'http://127.0.0.1:1', current: false },
      { name: 'prod', url: 'https://signalbox.example.com', current: true },
    ])
    await signalbox('context', 'remove', 'prod')
    const here = { ...env, SIGNALBOX_LOCAL_URL: 'http://localhost:8081' }
    expect(urlOf({ url: undefined, context: undefined }, here)).toBe('http://localhost:8081')
    expect(urlOf({ url: undefined, context: 'test' }, here)).toBe('http://127.0.0.1:1')
    expect(urlOf({ url: undefined, context: undefined }, env)).toBe('http://localhost:8080')
  })

  it('yield to closer settings: --url, then --context, SIGNALBOX_URL, SIGNALBOX_CONTEXT', () => {
    const env = { XDG_CONFIG_HOME: home, SIGNALBOX_URL: 'http://env/', SIGNALBOX_CONTEXT: 'test' }
    expect(urlOf({ url: 'http://option/', context: 'test' }, env)).toBe('http://option')
    expect(urlOf({ url: undefined, context: 'test' }, env)).toBe('http://127.0.0.1:1')
    expect(urlOf({ url: undefined, context: undefined }, env)).toBe('http://env')
    expect(urlOf({ url: undefined, context: undefined }, { ...env, SIGNALBOX_URL: '' })).toBe('http://127.0.0.1:1')
  })

  it('that cannot be kept end in one line: without a home folder, or where none may write', async () => {
    const set = ['context', 'set', 'test', '--url', 'http://127.0.0.1:1/']
    expect(await spawned(set, { HOME: '', XDG_CONFIG_HOME: '' })).toMatchObject({
      code: 1,
      err: 'This account has no home folder. Set XDG_CONFIG_HOME to a folder of your own.\n',
    })
    writeFileSync(join(home, 'a-file'), '')
    expect(() => writePrivate(join(home, 'a-file/signalbox/contexts.json'), {})).toThrow(
      /contexts\.json cannot be written: ENOTDIR.*Make its folder writable, or set XDG_CONFIG_HOME/,
    )
  })

  it.each(['{', 'null', '[]', '{}', '{"current":"a","contexts":{"a":{}}}'])(
    'in a damaged file (%s) are refused',
    (text) => {
      const damaged = mkdtempSync(join(home, 'damaged-'))
      mkdirSync(join(damaged, 'signalbox'))
      writeFileSync(join(damaged, 'signalbox/contexts.json'), text, { mode: 0o600 })
      const read = () => urlOf({ url: undefined, context: undefined }, { XDG_CONFIG_HOME: damaged })
      expect(read).toThrow(/contexts\.json is damaged\. Remove it, then run: signalbox context set/)
    },
  )
})

describe('a question', () => {
  it.each(['\u0003', '\u0004'])('that the person ends (%j) exits 130, without a stack', async (key) => {
    const words = [...CLI, 'login', 'eva', '--url', 'http://127.0.0.1:1']
    const env = { PATH: process.env.PATH ?? '', XDG_CONFIG_HOME: home }
    const terminal = spawnTerminal(process.execPath, words, { cwd: home, env })
    let screen = ''
    terminal.onData((text) => {
      screen += text
    })
    const code = new Promise<number>((resolve) => terminal.onExit(({ exitCode }) => resolve(exitCode)))
    await until(() => screen.includes('password:'), { what: 'the prompt' })
    terminal.write(key)
    expect({ code: await code, screen }).toEqual({ code: 130, screen: expect.stringMatching(/Canceled\.\s*$/) })
    expect(screen).not.toContain('    at ')
  })
})

describe('--select', () => {
  it('prints the result of the expression: strings as they are, all else as JSON', async () => {
    await signalbox('context', 'set', 'other', '--url', 'http://127.0.0.1:2')
    expect((await signalbox('context', 'list', '--select', '$[name="other"].url')).out).toBe('http://127.0.0.1:2\n')
    expect(JSON.parse((await signalbox('context', 'list', '--select', 'name')).out)).toContain('other')
    expect((await signalbox('context', 'list', '--select', 'absent')).out).toBe('')
    const lines = (await signalbox('context', 'list', '--jsonl', '--select', '[name]')).out.trimEnd().split('\n')
    expect(lines.map((line) => JSON.parse(line) as unknown)).toContain('other')
  })

  it('without an expression prints everything', async () => {
    expect(await selectionOf(undefined)).toBeUndefined()
  })

  it('that fails at run time exits 2', async () => {
    const { code, err } = await signalbox('context', 'list', '--select', '$number("x")')
    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining('--select failed') })
  })

  it('of a command that is refused halfway prints the part before, and the refusal is the error', async () => {
    const refusal = { title: 'Conflict', detail: 'No way back.', category: 'invalid_state_transition', code: 'refused' }
    const answerTo = (url = ''): [status: number, body: object] => {
      if (url.endsWith('/rollback')) return [200, { intents: [{ request: {} }] }]
      return url.endsWith('/intents') ? [201, { intent_id: 'i-1', title: 'Back' }] : [409, { ...refusal, status: 409 }]
    }
    const server = createServer((req, res) => {
      const [status, body] = answerTo(req.url)
      req.resume().on('end', () => {
        res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const operation = '0195f0c2-0000-7000-8000-000000000001'
    const select = (expression: string) =>
      spawned(['op', 'rollback', operation, '--url', url, '--select', expression], { SIGNALBOX_TOKEN: 't' })
    try {
      const err = expect.stringContaining('No way back.')
      expect(await select('unplanned.title')).toEqual({ code: 7, out: 'Back\n', err })
      const failed = await select('$number("x")')
      expect(failed).toEqual({ code: 7, out: '', err })
      expect(failed.err).not.toContain('    at ')
    } finally {
      server.close()
    }
  })
})

describe('beside other programs', () => {
  it('keeps its exit code if nobody reads its words', async () => {
    const child = spawn(process.execPath, [...CLI, 'oplist'], { cwd: home, env: { PATH: process.env.PATH } })
    child.stderr.destroy()
    expect(await new Promise((resolve) => child.on('exit', resolve))).toBe(2)
  })

  it('says that a proxy is set but not used', async () => {
    const ran = await spawned(['doctor', '--url', 'http://127.0.0.1:1'], { HTTPS_PROXY: 'http://127.0.0.1:1' })
    expect(ran.out + ran.err).toContain('NODE_USE_ENV_PROXY=1')
  })
})
