import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client, type Dispatcher, type Pool } from 'undici'
import { stringify } from 'yaml'
import { startProvider } from '../../../apps/platform/demo/provider.ts'
import { cpuSince } from '../lib/cpu.ts'
import { closedLoop } from '../lib/load.ts'
import { printFigure } from '../lib/print.ts'
import { type Bench, failIfAny, json, of, REFRESHERS, ROUNDS, type Row, refresher, type Tokens, us } from './clients.ts'

const APPS = ['gateway', 'session', 'token', 'identity'] as const
const PEOPLE = 64

/** A provider in the process of the load generator: its work is in no figure. */
export const startCorp = async () => {
  const people = Array.from({ length: PEOPLE }, (_, at) => ({ sub: `s-${at}`, name: `sso-${at}`, groups: ['staff'] }))
  const provider = await startProvider({ port: 0, people })
  const dir = mkdtempSync(join(tmpdir(), 'signalbox-bench-sso-'))
  mkdirSync(join(dir, 'secrets'))
  writeFileSync(join(dir, 'secrets/corp'), provider.client_secret)
  const file = join(dir, 'providers.yaml')
  const { issuer, client_id } = provider
  const named = { id: 'corp', title: 'Corp', issuer, client_id, client_secret: 'secret://file/corp' }
  const rights = { groups: { claim: 'groups', map: {} }, jit: { enabled: true, require_group: ['staff'] } }
  writeFileSync(file, stringify({ format: 'signalbox/providers@1', providers: [{ ...named, ...rights }] }))
  const stop = async () => {
    await provider.stop()
    rmSync(dir, { recursive: true, force: true })
  }
  return { file, issuer, stop }
}

type Answer = { status: number; location: string; cookie: string; text: string }
const go = async (at: Dispatcher, path: string, headers = {}, body?: object): Promise<Answer> => {
  const sent = body === undefined ? { method: 'GET' as const } : { method: 'POST' as const, body: JSON.stringify(body) }
  const reply = await at.request({ path, headers: { ...(body && json), ...headers }, ...sent })
  const text = await reply.body.text()
  const { location = '', 'set-cookie': set = '' } = reply.headers
  return { status: reply.statusCode, location: String(location), cookie: [set].flat()[0]?.split(';')[0] ?? '', text }
}

/** One sign-in as a browser makes it; the time at the provider is given back apart. */
const signInAt = (gateway: Pool, corp: Dispatcher) => {
  let turn = 0
  return async (): Promise<boolean> => {
    turn += 1
    const started = await go(gateway, '/v1/sso/corp/start')
    if (started.status !== 303) return false
    const asked = new URL(started.location)
    const back = new URL((await go(corp, `${asked.pathname}${asked.search}&person=s-${turn % PEOPLE}`)).location)
    const done = await go(gateway, `${back.pathname}${back.search}`, { cookie: started.cookie })
    return done.status === 303 && done.location === '/inbox'
  }
}

/** The calls of federation one by one, each as often as the loop gets to it. */
const callsOf = async ({ gateway }: Bench, access_token: string) => {
  const asked = { client_id: 'signalbox-cli', host: 'bench' }
  const { device_code } = JSON.parse((await go(gateway, '/v1/device', {}, asked)).text) as { device_code: string }
  const grant_type = 'urn:ietf:params:oauth:grant-type:device_code'
  const authorization = `Bearer ${access_token}`
  return {
    'start of a sign-in': async () => (await go(gateway, '/v1/sso/corp/start')).status === 303,
    'list of providers': async () => (await go(gateway, '/v1/providers')).status === 200,
    'codes of a device': async () => (await go(gateway, '/v1/device', {}, asked)).status === 200,
    'poll of a device': async () => (await go(gateway, '/v1/token', {}, { grant_type, device_code })).status === 400,
    'list of sessions': async () => (await go(gateway, '/api/v1/sessions', { authorization })).status === 200,
  } satisfies Record<string, () => Promise<boolean>>
}

/** Sign-ins through a provider, and the other calls of federation, beside refreshes of the same run. */
export const benchSso =
  (issuer: string) =>
  async (bench: Bench, sessions: Tokens[], access_token: string): Promise<Row[]> => {
    const pids = Object.fromEntries(APPS.map((name) => [name, bench.stack.pid(name) ?? 0]))
    const measure = async (what: string, call: (worker: number) => Promise<boolean>, ms = 1500) => {
      const cpu = cpuSince(pids)
      const arm = await closedLoop(REFRESHERS, ms, call)
      failIfAny(what, arm)
      return { per_s: arm.per_s, cpu_ms: Object.values(cpu()).reduce((sum, one) => sum + one, 0) / arm.count }
    }
    const corp = new Client(issuer, { pipelining: 8 })
    try {
      const signIn = signInAt(bench.gateway, corp)
      const arms = {
        refresh: refresher(bench, sessions),
        'sign-in through a provider': signIn,
        ...(await callsOf(bench, access_token)),
      }
      // Makes the accounts, and lets the engine compile what the arms run.
      for (const [what, call] of Object.entries(arms)) await measure(what, call, 2000)
      const rounds: Record<string, Awaited<ReturnType<typeof measure>>>[] = []
      for (let round = 1; round <= ROUNDS; round++) {
        console.error(`federation, round ${round} of ${ROUNDS}`)
        const row: (typeof rounds)[number] = {}
        for (const [what, call] of Object.entries(arms)) row[what] = await measure(what, call)
        rounds.push(row)
      }
      const cpuOf = (what: string) => of(rounds, (row) => row[what]?.cpu_ms ?? 0)
      const rateOf = (what: string) => of(rounds, (row) => row[what]?.per_s ?? 0)
      const refresh = cpuOf('refresh')
      const figures = Object.fromEntries(
        Object.keys(arms).map((what) => [
          what,
          { per_s: rateOf(what), cpu_ms: cpuOf(what), of_refresh: cpuOf(what) / refresh },
        ]),
      )
      printFigure({ figure: 'federation', rounds: ROUNDS, arms: figures })
      return Object.entries(figures).map(
        ([what, { per_s, cpu_ms, of_refresh }]): Row => [
          `${what}: per second; CPU`,
          `${per_s.toFixed(0)}; ${us(cpu_ms)}`,
          us(refresh),
          `${of_refresh.toFixed(2)} of a refresh; two cores carry ${(2000 / cpu_ms).toFixed(0)}/s`,
        ],
      )
    } finally {
      await corp.close()
    }
  }
