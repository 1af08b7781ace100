import { spawnSync } from 'node:child_process'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ROOT } from '../../../apps/platform/base/paths.ts'
import { until } from '../../support/until.ts'
import { atTerminal, credentials, home, json, login, passwords, signalbox, stack } from '../client.ts'

type Plan = { plan_id: string; plan_hash: string }
type Finding = { check: string; ok: boolean; said: string; remedy?: string }

/** Plans and starts this graph as olga; returns the ids. */
const start = async (nodes: object[]) => {
  const intent = { kind: 'graph', title: 'looked at', reason: 'cli', targets: [], graph: { nodes, gates: [] } }
  const created = await signalbox('olga', ['intent', 'create', '-f', '-', '-o', 'id'], JSON.stringify(intent))
  const intent_id = created.out.trim()
  const plan = json<Plan>(await signalbox('olga', ['plan', 'preview', intent_id, '-o', 'json']))
  const started = ['plan', 'start', plan.plan_id, '--yes', '--digest', plan.plan_hash, '-o', 'id']
  return { intent_id, plan_id: plan.plan_id, id: (await signalbox('olga', started)).out.trim() }
}
const fails = {
  node_id: 'fails',
  kind: 'task',
  executor: 'http',
  with: { request: { method: 'GET', url: 'http://127.0.0.1:2/' } },
  idempotent: true,
  retry: { max_attempts: 1 },
}
const after = { node_id: 'after', kind: 'task', executor: 'noop', depends_on: ['fails'], idempotent: true }

describe('looking closer', () => {
  it('shows intent, plan and graph, and reports a held failed node as waiting for a person', async () => {
    await login('olga')
    const { intent_id, plan_id, id } = await start([fails, after])
    const wait = (...more: string[]) => signalbox('olga', ['op', 'wait', id.slice(-8), '--timeout', '60s', ...more])
    expect(await wait('--through-gates')).toMatchObject({ code: 4, out: expect.stringMatching(/^WAITING .*fails/) })
    expect(await wait('--for', 'waiting')).toMatchObject({
      code: 0,
      out: expect.stringContaining('signalbox op nodes'),
    })
    expect(await wait('--for', 'ever')).toMatchObject({ code: 2, err: expect.stringContaining('ended, succeeded') })

    const graph = await signalbox('olga', ['op', 'graph', id.slice(-8)])
    expect(graph.out).toMatch(/^FAILED +fails\n\w+ +after {3}after fails\n$/)
    expect(json<{ nodes: object[] }>(await signalbox('olga', ['op', 'graph', id, '-o', 'json'])).nodes).toHaveLength(2)

    const shown = await signalbox('olga', ['intent', 'show', intent_id.slice(-8)])
    expect(shown.out).toMatch(/^EXECUTING {3}looked at {3}graph, intent .*\n {2}by olga, .* UTC {3}cli\n/)
    expect(shown.out).toContain(`plan ${plan_id}`)
    expect(await signalbox('olga', ['plan', 'show', plan_id])).toMatchObject({ code: 0 })
    expect(await signalbox('olga', ['plan', 'show', plan_id, '--exit-code'])).toMatchObject({ code: 8 })
    expect(await signalbox('olga', ['op', 'cancel', id, '--reason', 'seen', '--yes'])).toMatchObject({ code: 0 })
  })

  it('shows times in the requested zone, and names it', async () => {
    const { out } = await signalbox('olga', ['op', 'list', '--zone', 'Asia/Kolkata'])
    const [operation] = json<{ created_at: string }[]>(await signalbox('olga', ['op', 'list', '-o', 'json']))
    const there = new Date(Date.parse(operation?.created_at ?? '') + 330 * 60_000).toISOString()
    expect(out).toContain('created (Asia/Kolkata)')
    expect(out).toContain(there.slice(0, 16).replace('T', ' '))
    expect(await signalbox('olga', ['op', 'list', '--zone', 'Nowhere'])).toMatchObject({ code: 2 })
  })

  it('opens the page of an id: its address for scripts, a browser at a terminal', async () => {
    const [id = ''] = (await signalbox('olga', ['op', 'list', '-o', 'id'])).out.split('\n')
    const url = `${stack.gateway_url}/operations/${id}`
    for (const given of [id, id.slice(-8)])
      expect(await signalbox('olga', ['open', given])).toMatchObject({ code: 0, out: `${url}\n` })
    const [intent] = json<{ intent_id: string; latest_plan_id: string }[]>(
      await signalbox('olga', ['intent', 'list', '-o', 'json']),
    )
    const plan = { url: `${stack.gateway_url}/plans/${intent?.latest_plan_id}` }
    expect(json(await signalbox('olga', ['open', intent?.intent_id ?? '', '-o', 'json']))).toEqual(plan)
    expect(await signalbox('olga', ['open', 'no-such-thing'])).toMatchObject({ code: 1 })

    const browser = join(home, 'browser.sh')
    writeFileSync(browser, `#!/bin/sh\necho "$1" > ${join(home, 'opened')}\n`)
    chmodSync(browser, 0o755)
    const seen = atTerminal('olga', ['open', id], { BROWSER: browser })
    expect(await seen.code).toBe(0)
    await until(() => readFileSync(join(home, 'opened'), 'utf8') === `${url}\n`, { what: 'the browser' })
  })
})

describe('any endpoint', () => {
  it('prints its answer as JSON, or as the options say', async () => {
    const me = async (...more: string[]) => (await signalbox('olga', ['api', 'GET', '/v1/me', ...more])).out
    expect(JSON.parse(await me())).toMatchObject({ username: 'olga' })
    expect(await me('--select', 'username')).toBe('olga\n')
    expect(await me('--jsonl')).toBe(`${JSON.stringify(JSON.parse(await me()))}\n`)
    expect(await me('-o', 'yaml')).toMatch(/^username: olga$/m)
  })
})

describe('completion', () => {
  const words = async (who: string, ...typed: string[]) =>
    (await signalbox(who, ['completion', 'words', '--', ...typed])).out.trim().split('\n')

  it('knows nouns, verbs, options, formats and recent ids; without a server only static ones', async () => {
    expect(await words('olga', 'pa')).toEqual(['patch', 'pack'])
    expect(await words('olga', 'patch', '')).toEqual(['list', 'show', 'propose', 'approve', 'reject'])
    expect(await words('olga', 'op', 'wait', '--f')).toEqual(['--for'])
    expect(await words('olga', 'op', 'list', '-o', 'j')).toEqual(['json'])
    const ids = (await signalbox('olga', ['op', 'list', '-o', 'id'])).out.trim().split('\n')
    const [id = ''] = ids
    expect(await words('olga', 'op', 'show', '')).toEqual(ids.slice(0, 20).map((one) => one.slice(-6)))
    expect(await words('olga', 'op', 'retry', '--op', id, '')).toContain('after')
    expect(await words('nobody', 'op', 'show', '')).toEqual([''])
    expect(await signalbox('nobody', ['completion', 'tcsh'])).toMatchObject({ code: 2 })
    for (const shell of ['zsh', 'fish'])
      expect((await signalbox('nobody', ['completion', shell])).out).toContain('signalbox completion words --')
  })

  it('works in a real bash as printed', () => {
    const script = [
      `signalbox() { "${process.execPath}" "${join(ROOT, 'apps/cli/main.ts')}" "$@"; }`,
      'eval "$(signalbox completion bash)"',
      `COMP_WORDS=(signalbox gate a); COMP_CWORD=2; _signalbox; echo "\${COMPREPLY[*]}"`,
      `COMP_WORDS=(signalbox comp); COMP_CWORD=1; _signalbox; echo "\${COMPREPLY[*]}"`,
      'complete -p signalbox',
    ].join('\n')
    const { stdout } = spawnSync('bash', ['-c', script], {
      encoding: 'utf8',
      env: { PATH: process.env.PATH, HOME: home },
    })
    expect(stdout).toBe('approve\ncompletion\ncomplete -o default -F _signalbox signalbox\n')
  })
})

describe('doctor', () => {
  const examine = async (who: string, env: Record<string, string> = {}) => {
    const ran = await signalbox(who, ['doctor', '-o', 'json'], '', env)
    return { code: ran.code, wrong: json<Finding[]>(ran).filter(({ ok }) => !ok) }
  }
  /** A proxy in front of the gateway that reports another time, or buffers answers until they are complete. */
  let proxy: Server
  let fault: 'none' | 'late' | 'buffers' = 'none'
  let url = ''
  beforeAll(async () => {
    proxy = createServer((req, res) => {
      const { hostname, port } = new URL(stack.gateway_url)
      const to = {
        hostname,
        port,
        path: req.url,
        method: req.method,
        headers: { ...req.headers, host: `${hostname}:${port}` },
      }
      const ahead = request(to, (answer) => {
        const date = new Date(Date.now() - 3_600_000).toUTCString()
        if (fault === 'buffers' && req.url?.startsWith('/api/v1/events')) return
        res.writeHead(answer.statusCode ?? 502, { ...answer.headers, ...(fault === 'late' && { date }) })
        answer.pipe(res)
      })
      req.on('close', () => req.complete || ahead.destroy())
      res.on('close', () => ahead.destroy())
      ahead.on('error', () => res.destroy())
      req.pipe(ahead)
    })
    await login('olga')
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
    url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
  })
  afterAll(() => {
    proxy.closeAllConnections()
    proxy.close()
  })

  it('finds no fault in a healthy installation, with one line for each check', async () => {
    const { code, out } = await signalbox('olga', ['doctor'])
    expect(
      out
        .trim()
        .split('\n')
        .map((line) => /^ok {4}(\w+): /.exec(line)?.[1]),
    ).toEqual(['server', 'clock', 'credentials', 'version', 'session', 'stream'])
    expect(code).toBe(0)
  })

  it('names each fault with its remedy: address, sign-in, file, clock, a proxy that blocks the stream', async () => {
    const away = await examine('olga', { SIGNALBOX_URL: 'http://127.0.0.1:1' })
    expect(away).toMatchObject({ code: 1, wrong: [{ check: 'server', remedy: expect.stringContaining('--url') }] })
    const nobody = await examine('nobody')
    expect(nobody).toMatchObject({ code: 1, wrong: [{ check: 'credentials', remedy: 'signalbox login NAME' }] })
    chmodSync(credentials('olga'), 0o644)
    const wide = await examine('olga')
    expect(wide.wrong).toMatchObject([{ check: 'credentials', remedy: expect.stringMatching(/^chmod 600 /) }])
    chmodSync(credentials('olga'), 0o600)

    await signalbox('olga', ['login', 'olga', '--password-stdin', '--url', url], `${passwords.get('olga')}\n`)
    const through = { SIGNALBOX_URL: url }
    expect(await examine('olga', through)).toEqual({ code: 0, wrong: [] })
    fault = 'late'
    expect((await examine('olga', through)).wrong).toMatchObject([
      { check: 'clock', said: expect.stringMatching(/3[56]\d\d s/) },
    ])
    fault = 'buffers'
    expect((await examine('olga', through)).wrong).toMatchObject([
      { check: 'stream', remedy: expect.stringContaining('proxy_buffering off') },
    ])
  })
})
