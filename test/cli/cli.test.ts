import { spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type IPty, spawn as spawnTerminal } from '@lydell/node-pty'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { compileCacheDir } from '../../apps/platform/compile-cache.ts'
import { readDemo } from '../../apps/platform/demo/accounts.ts'
import { ROOT } from '../../apps/platform/paths.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { until } from '../support/until.ts'

/** The command line client against a real platform, as a process of its own with its own credentials file. */
let stack: Stack
let home: string
const passwords = new Map<string, string>()
// Every step is a process of its own, and the machine has other tests to run.
vi.setConfig({ testTimeout: 120_000 })

beforeAll(async () => {
  stack = await startStack()
  home = mkdtempSync(join(tmpdir(), 'signalbox-cli-'))
  await stack.people()
  for (const { username, password } of readDemo(stack.dir)?.users ?? []) passwords.set(username, password)
})
afterAll(async () => {
  rmSync(home, { recursive: true, force: true })
  await stack.stop()
})

type Ran = { code: number | null; out: string; err: string }

const signalbox = (who: string, args: string[], input = '', env: Record<string, string> = {}): Promise<Ran> =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, [join(ROOT, 'apps/cli/main.ts'), ...args], {
      cwd: home,
      env: {
        PATH: process.env.PATH,
        NODE_COMPILE_CACHE: compileCacheDir(),
        XDG_CONFIG_HOME: join(home, who),
        SIGNALBOX_URL: stack.gateway_url,
        NO_COLOR: '1',
        ...env,
      },
    })
    const ran: Ran = { code: null, out: '', err: '' }
    child.stdout.on('data', (chunk: Buffer) => (ran.out += chunk))
    child.stderr.on('data', (chunk: Buffer) => (ran.err += chunk))
    child.on('close', (code) => resolve({ ...ran, code }))
    child.stdin.end(input)
  })

/** The client at a real terminal: what a person sees, and what they type. */
const atTerminal = (who: string, args: string[], env: Record<string, string> = {}) => {
  const terminal: IPty = spawnTerminal(process.execPath, [join(ROOT, 'apps/cli/main.ts'), ...args], {
    cols: 100,
    rows: 30,
    cwd: home,
    env: {
      PATH: process.env.PATH ?? '',
      NODE_COMPILE_CACHE: compileCacheDir(),
      TERM: 'xterm-256color',
      XDG_CONFIG_HOME: join(home, who),
      SIGNALBOX_URL: stack.gateway_url,
      ...env,
    },
  })
  let screen = ''
  terminal.onData((text) => {
    screen += text
  })
  const code = new Promise<number>((resolve) => terminal.onExit(({ exitCode }) => resolve(exitCode)))
  return {
    code,
    screen: () => screen,
    shows: (text: string) => until(() => screen.includes(text), { timeout_ms: 60_000, what: text }),
    type: (text: string) => terminal.write(`${text}\r`),
  }
}

const login = (who: string) => signalbox(who, ['login', who, '--password-stdin'], `${passwords.get(who)}\n`)
const json = <T>({ out }: Ran): T => JSON.parse(out) as T
const credentials = (who: string) => join(home, who, 'signalbox/credentials.json')

describe('signing in', () => {
  it('keeps a session that only its owner can read, and ends it', async () => {
    expect(await login('ada')).toMatchObject({ code: 0 })
    expect(statSync(credentials('ada')).mode & 0o777).toBe(0o600)
    expect(readFileSync(credentials('ada'), 'utf8')).not.toContain(passwords.get('ada'))
    expect((await signalbox('ada', ['whoami'])).out).toContain('ada')
    chmodSync(credentials('ada'), 0o644)
    expect(await signalbox('ada', ['whoami'])).toMatchObject({ code: 9, err: expect.stringContaining('chmod 600') })
    chmodSync(credentials('ada'), 0o600)
    expect(await signalbox('ada', ['logout'])).toMatchObject({ code: 0 })
    expect(await signalbox('ada', ['whoami'])).toMatchObject({
      code: 9,
      err: expect.stringContaining('signalbox login'),
    })
  })

  it('says what is wrong: a password, a command, an option, an address in the clear, nobody there', async () => {
    const wrong = await signalbox('nobody', ['login', 'olga', '--password-stdin'], 'not the password\n')
    expect(wrong).toMatchObject({ code: 9, err: expect.stringContaining('invalid_credentials') })
    expect(await signalbox('nobody', ['gates'])).toMatchObject({ code: 2, err: expect.stringContaining('gates') })
    expect(await signalbox('nobody', ['op', 'list', '--wrong'])).toMatchObject({ code: 2 })
    expect(await signalbox('nobody', ['whoami', '--url', 'http://example.com'])).toMatchObject({ code: 2 })
    const away = await signalbox('nobody', ['login', 'olga', '--password-stdin', '--url', 'http://127.0.0.1:1'], 'x\n')
    expect(away).toMatchObject({ code: 1, err: expect.stringContaining('did not answer') })
    for (const { err } of [wrong, away]) expect(err).not.toMatch(/\n\s+at /)
  })

  it('ten commands at once with an ended access token refresh once and all get through', async () => {
    await login('eva')
    const kept = JSON.parse(readFileSync(credentials('eva'), 'utf8'))
    const before = kept[stack.gateway_url]
    kept[stack.gateway_url] = { ...before, expires_at: 0 }
    writeFileSync(credentials('eva'), JSON.stringify(kept), { mode: 0o600 })
    const all = await Promise.all(Array.from({ length: 10 }, () => signalbox('eva', ['whoami', '-o', 'id'])))
    expect(all.map(({ code, out }) => [code, out.trim()])).toEqual(Array(10).fill([0, 'eva']))
    const after = JSON.parse(readFileSync(credentials('eva'), 'utf8'))[stack.gateway_url]
    expect(after.refresh_token).not.toBe(before.refresh_token)
  })
})

describe('a change from intent to end', () => {
  let ended = ''
  const intent = {
    kind: 'graph',
    title: 'two steps and a gate',
    reason: 'cli',
    targets: [],
    graph: {
      nodes: ['first', 'second'].map((node_id) => ({
        node_id,
        kind: 'task',
        executor: 'noop',
        depends_on: node_id === 'second' ? ['first'] : [],
        with: { delay_ms: 0 },
        idempotent: true,
      })),
      gates: [
        { gate_id: 'go', question: 'Go on?', policy: { approvals: { quorum: 1, groups: [] } }, guards: ['second'] },
      ],
    },
  }

  it('is created, planned, started, waits for a person, is approved on the digest that was shown, and ends', async () => {
    await Promise.all([login('olga'), login('eva')])
    writeFileSync(join(home, 'intent.json'), JSON.stringify(intent))
    const intent_id = (await signalbox('olga', ['intent', 'create', '-f', 'intent.json', '-o', 'id'])).out.trim()
    const plan = json<{ plan_id: string; plan_hash: string }>(
      await signalbox('olga', ['plan', 'preview', intent_id.slice(-8), '-o', 'json']),
    )
    expect(await signalbox('olga', ['plan', 'start', plan.plan_id, '--yes'])).toMatchObject({
      code: 2,
      err: expect.stringContaining('--digest'),
    })
    const started = await signalbox('olga', [
      'plan',
      'start',
      plan.plan_id,
      '--yes',
      '--digest',
      plan.plan_hash,
      '-o',
      'id',
    ])
    const id = started.out.trim()
    const waits = await signalbox('olga', ['op', 'wait', id.slice(-8), '--timeout', '60s'])
    expect(waits).toMatchObject({ code: 4, out: expect.stringContaining('gate go') })
    expect((await signalbox('eva', ['inbox'])).out).toContain('two steps and a gate')
    const { digest } = json<{ digest: string }>(
      await signalbox('eva', ['gate', 'show', 'go', '--op', id, '-o', 'json']),
    )
    const approve = ['gate', 'approve', 'go', '--op', id, '--yes', '--digest']
    expect(await signalbox('eva', [...approve, `sha256:${'0'.repeat(64)}`])).toMatchObject({
      code: 7,
      err: expect.stringContaining('version_conflict/digest_moved'),
    })
    expect(await signalbox('eva', [...approve, digest])).toMatchObject({
      code: 0,
      out: expect.stringContaining('APPROVED'),
    })
    expect(await signalbox('eva', [...approve, digest])).toMatchObject({
      code: 7,
      err: expect.stringMatching(/gate_not_waiting\/already_(decided|consumed)/),
    })
    const watched = await signalbox('olga', ['op', 'watch', id])
    expect(watched).toMatchObject({ code: 0, out: expect.stringContaining('node.succeeded') })
    expect(watched.out.trim().split('\n').at(-1)).toMatch(/^SUCCEEDED {3}two steps and a gate/)
    ended = id
  })

  it('its evidence is a file that anybody checks without a server, and a forged line is named', async () => {
    const id = ended
    writeFileSync(join(home, 'keys.json'), (await signalbox('olga', ['evidence', 'keys'])).out)
    const { out: exported } = await signalbox('olga', ['evidence', 'export', id.slice(-8)])
    writeFileSync(join(home, 'evidence.jsonl'), exported)
    writeFileSync(join(home, 'forged.jsonl'), exported.replace('"seq":2,', '"seq":2, '))
    const nowhere = { SIGNALBOX_URL: 'http://127.0.0.1:1' }
    const verify = (file: string) =>
      signalbox('nobody', ['evidence', 'verify', file, '--keys', 'keys.json'], '', nowhere)
    expect(await verify('evidence.jsonl')).toMatchObject({ code: 0, out: expect.stringContaining(`operation ${id}`) })
    expect(await verify('forged.jsonl')).toMatchObject({
      code: 5,
      err: expect.stringMatching(/^BROKEN {3}forged\.jsonl, line 2: record 2: /),
    })
    expect(await signalbox('eva', ['evidence', 'export', id])).toMatchObject({ code: 7 })
  })

  it('its graph is changed by a patch: checked, proposed, approved on its digest by somebody else, and then runs', async () => {
    const created = await signalbox('olga', ['intent', 'create', '-f', 'intent.json', '-o', 'id'])
    const plan = json<{ plan_id: string; plan_hash: string }>(
      await signalbox('olga', ['plan', 'preview', created.out.trim(), '-o', 'json']),
    )
    const start = ['plan', 'start', plan.plan_id, '--yes', '--digest', plan.plan_hash, '-o', 'id']
    const id = (await signalbox('olga', start)).out.trim()
    await signalbox('olga', ['op', 'wait', id, '--timeout', '60s'])
    const propose = (changes: unknown, ...more: string[]) =>
      signalbox(
        'olga',
        ['patch', 'propose', '--op', id, '-f', '-', '--reason', 'look twice', ...more],
        JSON.stringify(changes),
      )
    const third = { node_id: 'third', kind: 'task', executor: 'noop', depends_on: ['second'], idempotent: true }

    const broken = await propose(
      [
        { op: 'remove_node', node_id: 'second' },
        { op: 'remove_node', node_id: 'nobody' },
      ],
      '--dry-run',
    )
    expect(broken).toMatchObject({ code: 7, err: expect.stringContaining('patch_not_applicable/unsound') })
    expect(broken.err).toContain('/changes/1/node_id there is no node "nobody"')
    const dry = await propose([{ op: 'add_node', node: third }], '--dry-run')
    expect(dry).toMatchObject({ code: 0, out: expect.stringContaining('+ add      third') })
    expect((await signalbox('olga', ['patch', 'list', '--op', id, '-o', 'id'])).out).toBe('')
    expect(await propose([{ op: 'add_node', node: third }])).toMatchObject({
      code: 2,
      err: expect.stringContaining('--yes'),
    })

    const patch_id = (
      await propose({ base_revision: 1, changes: [{ op: 'add_node', node: third }] }, '--yes', '-o', 'id')
    ).out.trim()
    const shown = await signalbox('eva', ['patch', 'show', patch_id.slice(-8), '--op', id])
    expect(shown.out).toMatch(
      /^AWAITING_APPROVAL {3}patch .* by olga, on revision 1\n {2}look twice\n {2}\+ add {6}third/,
    )
    const digest = /digest (sha256:[0-9a-f]{64})/.exec(shown.out)?.[1] ?? ''
    const approve = (who: string, ...more: string[]) =>
      signalbox(who, ['patch', 'approve', patch_id, '--op', id, '--yes', ...more])
    expect(await approve('eva')).toMatchObject({ code: 2, err: expect.stringContaining('--digest') })
    expect(await approve('olga', '--digest', digest)).toMatchObject({ code: 7 })
    expect(await approve('eva', '--digest', `sha256:${'0'.repeat(64)}`)).toMatchObject({
      code: 7,
      err: expect.stringContaining('version_conflict/digest_moved'),
    })
    expect(await approve('eva', '--digest', digest)).toMatchObject({
      code: 0,
      out: expect.stringContaining('revision 2'),
    })
    const late = ['patch', 'reject', patch_id, '--op', id, '--comment', 'too late', '--yes']
    expect(await signalbox('eva', late)).toMatchObject({ code: 7, err: expect.stringContaining('patch_closed') })

    const intervene = (...more: string[]) =>
      signalbox('olga', ['op', 'intervene', 'third', '--op', id, '--reason', 'done by hand', '--yes', ...more])
    writeFileSync(join(home, 'outputs.json'), '{}')
    const marked = ['--type', 'mark_succeeded', '--note', 'done by hand', '--outputs', 'outputs.json']
    expect(await intervene(...marked)).toMatchObject({
      code: 7,
      err: expect.stringContaining('intervention_not_applicable'),
    })
    expect(await intervene('--type', 'skip', '--ticket', 'OPS-7')).toMatchObject({ code: 0 })
    const gate = json<{ digest: string }>(await signalbox('eva', ['gate', 'show', 'go', '--op', id, '-o', 'json']))
    await signalbox('eva', ['gate', 'approve', 'go', '--op', id, '--yes', '--digest', gate.digest])
    const ended = await signalbox('olga', ['op', 'watch', id, '--strict'])
    expect(ended.out).toContain('patch.applied')
    expect(ended).toMatchObject({ code: 5, err: expect.stringContaining('with exceptions') })
  })

  it('a cancelled one ends with a code of its own', async () => {
    const created = await signalbox('olga', ['intent', 'create', '-f', '-', '-o', 'id'], JSON.stringify(intent))
    const plan = json<{ plan_id: string; plan_hash: string }>(
      await signalbox('olga', ['plan', 'preview', created.out.trim(), '-o', 'json']),
    )
    const start = ['plan', 'start', plan.plan_id, '--yes', '--digest', plan.plan_hash, '-o', 'id']
    const id = (await signalbox('olga', start)).out.trim()
    const cancel = ['op', 'cancel', id, '--reason', 'no longer wanted']
    expect(await signalbox('olga', cancel)).toMatchObject({ code: 2, err: expect.stringContaining('--yes') })
    expect(await signalbox('olga', [...cancel, '--yes'])).toMatchObject({ code: 0 })
    expect(await signalbox('olga', ['op', 'wait', id])).toMatchObject({ code: 6 })
    expect(await signalbox('olga', ['op', 'pause', id, '--reason', 'late', '--yes'])).toMatchObject({ code: 7 })
  })
})

describe('an administrator', () => {
  it('makes an account with its link, disables and enables it, and reads who did what from each log', async () => {
    await Promise.all([login('ada'), login('olga')])
    const made = await signalbox('ada', ['user', 'create', 'nadia', '--role', 'viewer'])
    expect(made).toMatchObject({ code: 0, out: expect.stringMatching(/Link, works once: https?:.*\/enrol#/) })
    const act = (verb: string, ...more: string[]) => signalbox('ada', ['user', verb, 'nadia', ...more])
    expect(await act('disable', '--reason', 'left')).toMatchObject({ code: 2, err: expect.stringContaining('--yes') })
    for (const verb of ['disable', 'enable'])
      expect(await act(verb, '--reason', 'a test', '--yes')).toMatchObject({ code: 0, err: `nadia is ${verb}d.\n` })
    expect(await act('unlock')).toMatchObject({ code: 0 })
    const nobody = await signalbox('ada', ['user', 'unlock', 'nobody-at-all'])
    expect(nobody).toMatchObject({ code: 2, err: expect.stringContaining('No account is called') })
    expect((await signalbox('ada', ['user', 'list', '--q', 'nadia'])).out).toMatch(/nadia +ACTIVE +viewer/)

    const logs = ['operations', 'catalog', 'users', 'sign-ins'].map((source) =>
      signalbox('ada', ['audit', 'list', '--source', source, '-o', 'json']),
    )
    for (const log of await Promise.all(logs)) expect(log).toMatchObject({ code: 0 })
    const { out } = await signalbox('ada', ['audit', 'export', '--source', 'users'])
    expect(
      out
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).action),
    ).toContain('user.disabled')
    expect(await signalbox('ada', ['audit', 'list', '--source', 'all'])).toMatchObject({ code: 2 })
    expect(await signalbox('olga', ['audit', 'list'])).toMatchObject({ code: 7 })
  })
})

describe('at a terminal', () => {
  /** A started operation of one gate, or its plan before the start. */
  const plan = async () => {
    const created = await signalbox('olga', ['intent', 'create', '-f', 'intent.json', '-o', 'id'])
    return json<{ plan_id: string; plan_hash: string }>(
      await signalbox('olga', ['plan', 'preview', created.out.trim(), '-o', 'json']),
    )
  }
  const start = async ({ plan_id, plan_hash }: { plan_id: string; plan_hash: string }) =>
    (await signalbox('olga', ['plan', 'start', plan_id, '--yes', '--digest', plan_hash, '-o', 'id'])).out.trim()

  it('a password is asked for and not shown, states have colours, NO_COLOR takes them away', async () => {
    const at = atTerminal('olga', ['login', 'olga'])
    await at.shows('password:')
    at.type(passwords.get('olga') ?? '')
    expect(await at.code).toBe(0)
    expect(at.screen()).not.toContain(passwords.get('olga'))
    const coloured = atTerminal('olga', ['op', 'list'])
    expect(await coloured.code).toBe(0)
    expect(coloured.screen()).toContain('\u001b[')
    const plain = atTerminal('olga', ['op', 'list'], { NO_COLOR: '1' })
    expect(await plain.code).toBe(0)
    expect(plain.screen()).not.toContain('\u001b[')
  })

  it('a plan is shown, asked about and started; a no sends nothing', async () => {
    const shown = await plan()
    const no = atTerminal('olga', ['plan', 'start', shown.plan_id])
    await no.shows('Start this? [y/N]')
    expect(no.screen()).toContain(shown.plan_hash)
    no.type('n')
    expect(await no.code).toBe(1)
    expect(no.screen()).toContain('Nothing was sent.')

    // Between what is shown and the answer somebody else is first.
    const late = atTerminal('olga', ['plan', 'start', shown.plan_id])
    await late.shows('Start this? [y/N]')
    expect(await start(shown)).not.toBe('')
    late.type('y')
    expect(await late.code).toBe(7)
    expect(late.screen()).toMatch(/refused .*\w+\/\w+: .*\r?\n(.*\r?\n)*hint /)
  })

  it('a gate that was decided while it was being read is refused, and approved when it still waits', async () => {
    const id = await start(await plan())
    await signalbox('olga', ['op', 'wait', id, '--timeout', '60s'])
    const gone = await start(await plan())
    await signalbox('olga', ['op', 'wait', gone, '--timeout', '60s'])

    const late = atTerminal('eva', ['gate', 'approve', 'go', '--op', gone])
    await late.shows('Approve this? [y/N]')
    expect(await signalbox('olga', ['op', 'cancel', gone, '--reason', 'not wanted', '--yes'])).toMatchObject({
      code: 0,
    })
    await signalbox('olga', ['op', 'wait', gone, '--timeout', '60s'])
    late.type('y')
    expect(await late.code).toBe(7)
    expect(late.screen()).toMatch(/refused .*(gate_not_waiting|invalid_transition|operation)/)

    const yes = atTerminal('eva', ['gate', 'approve', 'go', '--op', id])
    await yes.shows('Approve this? [y/N]')
    expect(yes.screen()).toContain('digest sha256:')
    yes.type('y')
    expect(await yes.code).toBe(0)
    expect(yes.screen()).toContain('APPROVED')
  })
})

describe('importing a file', () => {
  const manifest = (release: string, ...services: string[]) =>
    [
      ...services.map((name) => ({
        kind: 'Service',
        metadata: { name },
        spec: { selector: { app: name }, ports: [{ port: 80, protocol: 'TCP' }] },
      })),
      {
        kind: 'Deployment',
        metadata: { name: 'web' },
        spec: {
          replicas: 2,
          template: {
            metadata: { labels: { app: 'web' } },
            spec: { containers: [{ image: `shop/web:${release}`, env: [{ name: 'CART', value: 'cart:80' }] }] },
          },
        },
      },
      { kind: 'ConfigMap', metadata: { name: 'settings' } },
    ]
      .map((document) => JSON.stringify(document))
      .join('\n---\n')
  type Body = {
    results: { external_id: string; outcome: string; diff: { path: string; before?: unknown; after?: unknown }[] }[]
    missing: string[]
    generic: Record<string, number>
  }
  const run = (file: string, ...options: string[]) =>
    signalbox('ada', ['import', 'kubernetes', file, '--source-name', 'shop', '--batch', '2', ...options])
  const ends = (ran: Ran) => {
    const { results } = json<Body>(ran)
    return [ran.code, Object.fromEntries(results.map(({ external_id, outcome }) => [external_id, outcome]))]
  }
  const all = (outcome: string, ...ids: string[]) => Object.fromEntries(ids.map((id) => [id, outcome]))
  const IDS = ['cluster/shop', 'shop/Service/default/web', 'shop/Service/default/cart', 'shop/Deployment/default/web']
  const CONFIG = 'shop/ConfigMap/default/settings'

  beforeAll(async () => {
    await login('ada')
    const place = (type_key: string, name: string, desired_state: object, parent_id?: string) => ({
      resource_id: name,
      type_key,
      name,
      desired_state,
      ...(parent_id && { parent_id }),
    })
    for (const body of [
      place('topology.region', 'imp', { code: 'imp' }),
      place('topology.datacenter', 'imp-a', { code: 'imp-a' }, 'imp'),
    ])
      expect(await signalbox('ada', ['resource', 'create', '-f', '-'], JSON.stringify(body))).toMatchObject({ code: 0 })
    writeFileSync(join(home, 'shop.yaml'), manifest('1.0.0', 'web', 'cart'))
    writeFileSync(join(home, 'next.yaml'), manifest('1.1.0', 'web'))
  })

  it('tells first what then happens, makes it, and changes nothing the second time', async () => {
    const before = await run('shop.yaml', '--into', 'imp-a', '--dry-run')
    expect(before).toMatchObject({ code: 8, out: expect.stringContaining('+ add      shop/Deployment/default/web') })
    expect(before.err).toContain('no rule knows ConfigMap (1)')
    expect((await signalbox('ada', ['resource', 'list', '--type', 'infra.cluster', '-o', 'id'])).out).toBe('')
    const dry = ends(await run('shop.yaml', '--into', 'imp-a', '--dry-run', '-o', 'json'))
    expect(dry).toEqual([8, all('created', ...IDS, CONFIG)])
    const made = atTerminal('ada', ['import', 'kubernetes', 'shop.yaml', '--source-name', 'shop', '--into', 'imp-a'])
    expect(await made.code).toBe(0)
    expect(made.screen()).toMatch(/infra\.service +2\b/)
    expect(made.screen()).toMatch(/#{24} 5\/5 imported, \d+\/s/)
    expect(ends(await run('shop.yaml', '--into', 'imp-a', '-o', 'json'))).toEqual([0, all('unchanged', ...IDS, CONFIG)])
    expect(await run('shop.yaml', '--into', 'imp-a', '--dry-run')).toMatchObject({ code: 0 })
    const { out } = await run('shop.yaml', '--into', 'imp-a', '--jsonl')
    const lines = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines.flatMap(({ done, of }) => (done === undefined ? [] : [[done, of]]))).toEqual([
      [2, 5],
      [4, 5],
      [5, 5],
    ])
    expect(lines.at(-1)).toMatchObject({ outcomes: { unchanged: 5 }, generic: { ConfigMap: 1 } })
    const [web] = json<{ resource_id: string }[]>(
      await signalbox('ada', ['resource', 'list', '--type', 'infra.deployment', '-o', 'json']),
    )
    const edges = await signalbox('ada', [
      'api',
      'GET',
      `/api/v1/resources/${web?.resource_id}/relationships?direction=out`,
    ])
    for (const kind of ['member_of', 'depends_on', 'contained_in']) expect(edges.out).toContain(`"${kind}"`)
  })

  it('shows the difference of a newer file, labels what it no longer names, and takes the label back', async () => {
    const dry = await run('next.yaml', '--into', 'imp-a', '--dry-run', '--mark-missing', '-o', 'json')
    expect(dry.code).toBe(8)
    expect(json<Body>(dry).results.find(({ external_id }) => external_id === IDS[3])).toMatchObject({
      outcome: 'updated',
      diff: expect.arrayContaining([{ path: '/desired_state/release', before: '1.0.0', after: '1.1.0' }]),
    })
    const { missing } = json<Body>(await run('next.yaml', '--into', 'imp-a', '--mark-missing', '-o', 'json'))
    expect(missing).toHaveLength(1)
    const label = async () =>
      (await signalbox('ada', ['resource', 'show', missing[0] ?? '', '-o', 'json'])).out.includes('import-missing')
    expect(await label()).toBe(true)
    await run('shop.yaml', '--into', 'imp-a', '--mark-missing')
    expect(await label()).toBe(false)
  })

  it('refuses as told: --strict, a container that does not exist or does not fit, a name, a wrong file', async () => {
    expect(await run('shop.yaml', '--strict')).toMatchObject({ code: 2, err: expect.stringContaining('ConfigMap (1)') })
    expect(await run('shop.yaml', '--into', 'nowhere')).toMatchObject({ code: 1 })
    const homeless = await signalbox('ada', ['import', 'kubernetes', 'shop.yaml', '--source-name', 'other'])
    expect(homeless).toMatchObject({ code: 7, err: expect.stringMatching(/cardinality.*infra\.cluster: 1 of them/) })
    expect(homeless.err).toContain('hint     --into ID')
    expect(await signalbox('ada', ['import', 'kubernetes', 'shop.yaml', '--source-name', 'Not A Name'])).toMatchObject({
      code: 2,
    })
    const state = await signalbox('ada', ['import', 'terraform-state', 'shop.yaml', '--source-name', 'x'])
    expect(state).toMatchObject({ code: 2, err: expect.stringContaining('shop.yaml cannot be imported: it is no') })
    for (const { err } of [homeless, state]) expect(err).not.toMatch(/\n\s+at /)
  })
})

it('every command says how it is used', async () => {
  const { code, out } = await signalbox('nobody', ['--help'])
  expect(code).toBe(0)
  for (const name of [
    'login',
    'inbox',
    'gate approve',
    'patch propose',
    'op intervene',
    'plan start',
    'op wait',
    'resource list',
    'api',
  ])
    expect(out).toContain(`signalbox ${name}`)
})
