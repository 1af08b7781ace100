import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type IPty, spawn as spawnTerminal } from '@lydell/node-pty'
import { readDemo } from '../../apps/platform/demo/accounts.ts'
import { compileCacheDir } from '../../apps/platform/run/compile-cache.ts'
import { startHooks } from '../operations/support/receivers.ts'
import { CLI } from '../support/cli.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { until } from '../support/until.ts'

/** The single platform of all cases, and the client as a separate process with its own credentials file. */
export let stack: Stack
/** A receiver of webhooks that the platform may call. */
export let hooks: Awaited<ReturnType<typeof startHooks>>
/** The folder in which the client runs; each person's credentials are below it. */
export let home: string
export const passwords = new Map<string, string>()

export const startPlatform = async (): Promise<void> => {
  hooks = await startHooks()
  const inside = { scheme: 'http', host: '127.0.0.1', networks: ['127.0.0.1/32'], ports: [String(hooks.port)] }
  stack = await startStack({
    env_overrides: { NOTIFY__ENABLED: 'true', NOTIFY__EGRESS__ALLOW: JSON.stringify([inside]) },
  })
  home = mkdtempSync(join(tmpdir(), 'signalbox-cli-'))
  await stack.people()
  for (const { username, password } of readDemo(stack.dir)?.users ?? []) passwords.set(username, password)
}
export const stopPlatform = async (): Promise<void> => {
  rmSync(home, { recursive: true, force: true })
  await stack.stop()
  hooks.close()
}

export type Ran = { code: number | null; out: string; err: string }

export const signalbox = (who: string, args: string[], input = '', env: Record<string, string> = {}): Promise<Ran> =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, [...CLI, ...args], {
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
export const atTerminal = (who: string, args: string[], env: Record<string, string> = {}) => {
  const terminal: IPty = spawnTerminal(process.execPath, [...CLI, ...args], {
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
    shows: (text: string) => until(() => screen.includes(text), { what: text }),
    type: (text: string) => terminal.write(`${text}\r`),
  }
}

export const login = (who: string) => signalbox(who, ['login', who, '--password-stdin'], `${passwords.get(who)}\n`)
/** Approves or refuses the code of a waiting device as this person would, in a browser elsewhere. */
export const decideDevice = async (who: string, act: 'approve' | 'deny', said: string): Promise<number> => {
  const post = (path: string, body: object, token?: string) =>
    fetch(`${stack.gateway_url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) },
      body: JSON.stringify(body),
    })
  const signed_in = await post('/auth/login', { username: who, password: passwords.get(who) })
  const { access_token } = (await signed_in.json()) as { access_token: string }
  const user_code = /enter the code ([A-Z]{4}-[A-Z]{4})/.exec(said)?.[1]
  return (await post(`/v1/device/${act}`, { user_code }, access_token)).status
}
export const json = <T>({ out }: Ran): T => JSON.parse(out) as T
export const credentials = (who: string) => join(home, who, 'signalbox/credentials.json')
