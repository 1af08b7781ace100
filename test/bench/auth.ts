import { cpus, loadavg } from 'node:os'
import { Pool } from 'undici'
import { readDemo } from '../../apps/platform/demo/accounts.ts'
import { table } from '../../apps/shared/print.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { cpuSince, residentMib } from './lib/cpu.ts'
import { ask, type Bare, forkBare } from './lib/fork.ts'
import { median, quantile } from './lib/graph.ts'
import { type Arm, closedLoop, send } from './lib/load.ts'
import { printFigure } from './lib/print.ts'

/**
 * `npm run bench:auth`: what login, refresh and the gateway's checks cost, each against a baseline arm that is measured
 * in the same run, arms interleaved. Generator, servers and subjects share this machine, so rates are lower bounds and
 * only ratios and CPU times mean something elsewhere. CPU is user and system time of the processes, from /proc.
 * Arguments name the figures to take (refresh, gateway, logins, flood); `--profile=<folder>` leaves a CPU profile of
 * each app there.
 */
const ROUNDS = 3
const REFRESHERS = 16
const BUSY = 32
const QUIET = 2
const AUTH_APPS = ['gateway', 'session', 'token', 'identity'] as const
const LIMIT = '1000000/1/1000000'

type Bares = { upstream: Bare<number>; proxy: Bare<number>; crypto: Bare<string> }
type Physics = { count: number; seconds: number; cpu_ms: number }
type Bench = { stack: Stack; bares: Bares; gateway: Pool; proxy: Pool; users: { username: string; password: string }[] }
type Tokens = { access_token: string; refresh_token: string }

const json = { 'content-type': 'application/json' }
let address = 0
/** Each login from an address of its own, as the gateway hears it from a trusted proxy. */
const fromAnywhere = () => {
  address += 1
  return { ...json, 'x-forwarded-for': `10.${(address >> 16) & 255}.${(address >> 8) & 255}.${address & 255}` }
}
const login = ({ gateway }: Bench, username: string, password: string) =>
  send(gateway, {
    method: 'POST',
    path: '/auth/login',
    headers: fromAnywhere(),
    body: JSON.stringify({ username, password }),
  })
const signIn = async (bench: Bench, at: number): Promise<Tokens> => {
  const { username, password } = bench.users[at % bench.users.length] as Bench['users'][number]
  const reply = await login(bench, username, password)
  if (reply.status !== 200) throw new Error(`${username} cannot sign in: ${reply.status} ${reply.text}`)
  return JSON.parse(reply.text) as Tokens
}

const refresher = (bench: Bench, sessions: Tokens[]) => async (worker: number) => {
  const session = sessions[worker] as Tokens
  const reply = await send(bench.gateway, {
    method: 'POST',
    path: '/auth/refresh',
    headers: json,
    body: JSON.stringify({ refresh_token: session.refresh_token }),
  })
  if (reply.status !== 200) return false
  Object.assign(session, JSON.parse(reply.text))
  return true
}
const reader = (pool: Pool, path: string, access_token: string) => {
  const request = { method: 'GET', path, headers: { authorization: `Bearer ${access_token}`, accept: '*/*' } }
  return async () => (await send(pool, request)).status === 200
}

const failIfAny = (what: string, { failed, count }: Arm) => {
  if (failed > 0) throw new Error(`${failed} of ${count} calls of "${what}" failed`)
}
const of = <T>(arms: T[], pick: (arm: T) => number): number => median(arms.map(pick))
const us = (ms: number) => `${(ms * 1000).toFixed(0)} us`

/** Refreshes per second and their CPU in all auth processes, against two signatures and one verification. */
const benchRefresh = async (bench: Bench, sessions: Tokens[]): Promise<string[][]> => {
  const pids = Object.fromEntries(AUTH_APPS.map((name) => [name, bench.stack.pid(name) ?? 0]))
  const refresh = refresher(bench, sessions)
  const rounds: { ours: Arm; cpu: Record<string, number>; bare: Physics }[] = []
  for (let round = 1; round <= ROUNDS; round++) {
    console.error(`refresh, round ${round} of ${ROUNDS}`)
    const cpu = cpuSince(pids)
    const ours = await closedLoop(REFRESHERS, 3000, refresh)
    const used = cpu()
    failIfAny('refresh', ours)
    rounds.push({ ours, cpu: used, bare: await ask(bench.bares.crypto, { kind: 'rs256', ms: 1500 }) })
  }
  const each = (name: string) => of(rounds, ({ cpu, ours }) => (cpu[name] ?? 0) / ours.count)
  const by_app = Object.fromEntries(AUTH_APPS.map((name) => [name, each(name)]))
  const total = of(rounds, ({ cpu, ours }) => Object.values(cpu).reduce((sum, ms) => sum + ms, 0) / ours.count)
  const bare = of(rounds, (round) => round.bare.cpu_ms / round.bare.count)
  const per_s = of(rounds, ({ ours }) => ours.per_s)
  const p99 = of(rounds, ({ ours }) => quantile(ours.times_ms, 0.99))
  printFigure({
    figure: 'refresh',
    per_s,
    p99_ms: p99,
    cpu_ms: total,
    cpu_ms_by_app: by_app,
    bare_cpu_ms: bare,
    ratio: total / bare,
    added_cpu_ms: total - bare,
    rounds: ROUNDS,
  })
  return [
    ['refreshes per second', per_s.toFixed(0), '', `p99 ${p99.toFixed(1)} ms, ${REFRESHERS} at a time`],
    ['CPU per refresh, all auth apps', us(total), us(bare), `${(total / bare).toFixed(2)} (aim <= 2)`],
    ['CPU per refresh beside signatures', us(total - bare), '', 'aim <= 1100 us'],
    ...AUTH_APPS.map((name) => [`  of it in ${name}`, us(by_app[name] ?? 0), '', '']),
  ]
}

/** Verified requests with limits and revocation against a bare pass-through to the same upstream. */
const benchGateway = async (bench: Bench, access_token: string): Promise<string[][]> => {
  const arms = {
    ours: { call: reader(bench.gateway, '/api/v1/resources', access_token), pid: bench.stack.pid('gateway') ?? 0 },
    bare: { call: reader(bench.proxy, '/v1/resources', access_token), pid: bench.bares.proxy.pid },
  }
  for (const { call } of Object.values(arms)) await closedLoop(BUSY, 500, call)
  const measure = async ({ call, pid }: (typeof arms)['ours']) => {
    const cpu = cpuSince({ pid })
    const busy = await closedLoop(BUSY, 2000, call)
    const cpu_ms = (cpu().pid ?? 0) / busy.count
    const quiet = await closedLoop(QUIET, 1000, call)
    failIfAny('verified requests', busy)
    return { per_s: busy.per_s, cpu_ms, p50: quantile(quiet.times_ms, 0.5), p99: quantile(quiet.times_ms, 0.99) }
  }
  type Measured = Awaited<ReturnType<typeof measure>>
  const rounds: { ours: Measured; bare: Measured }[] = []
  for (let round = 1; round <= ROUNDS; round++) {
    console.error(`verified requests, round ${round} of ${ROUNDS}`)
    rounds.push({ bare: await measure(arms.bare), ours: await measure(arms.ours) })
  }
  const pair = (key: keyof Measured) => ({
    ours: of(rounds, (round) => round.ours[key]),
    bare: of(rounds, (round) => round.bare[key]),
    ratio: of(rounds, (round) => round.ours[key] / round.bare[key]),
    added: of(rounds, (round) => round.ours[key] - round.bare[key]),
  })
  const [rate, cpu, p50, p99] = [pair('per_s'), pair('cpu_ms'), pair('p50'), pair('p99')]
  printFigure({ figure: 'verified_requests', per_s: rate, cpu_ms: cpu, p50_ms: p50, p99_ms: p99, rounds: ROUNDS })
  return [
    [
      'verified requests per second',
      rate.ours.toFixed(0),
      rate.bare.toFixed(0),
      `${rate.ratio.toFixed(2)} (aim >= 0.7)`,
    ],
    ['gateway CPU per request', us(cpu.ours), us(cpu.bare), `+${us(cpu.added)} (aim <= 100 us)`],
    ['time of a request, p99', us(p99.ours), us(p99.bare), `+${us(p99.added)} (aim <= 2000 us)`],
  ]
}

/** Logins per second against bare Argon2id of the same parameters, and the memory of ten hashes at once. */
const benchLogins = async (bench: Bench): Promise<string[][]> => {
  const pid = bench.stack.pid('credential') ?? 0
  const rounds: { ours: Arm; bare: Physics }[] = []
  let resident = 0
  for (let round = 1; round <= ROUNDS; round++) {
    console.error(`logins, round ${round} of ${ROUNDS}`)
    const bare = await ask<Physics>(bench.bares.crypto, { kind: 'argon2id', ms: 3000 })
    const watch = setInterval(() => {
      resident = Math.max(resident, residentMib(pid))
    }, 20)
    const ours = await closedLoop(10, 3000, async (worker) => (await signIn(bench, worker)).access_token !== '')
    clearInterval(watch)
    rounds.push({ ours, bare })
  }
  const ours = of(rounds, (round) => round.ours.per_s)
  const bare = of(rounds, (round) => round.bare.count / round.bare.seconds)
  const ratio = of(rounds, (round) => (round.ours.per_s * round.bare.seconds) / round.bare.count)
  printFigure({ figure: 'logins', per_s: ours, bare_per_s: bare, ratio, rounds: ROUNDS })
  printFigure({ figure: 'credential_resident', mib: resident, hashes: 10 })
  return [
    ['logins per second', ours.toFixed(1), bare.toFixed(1), `${ratio.toFixed(2)} (aim >= 0.9)`],
    ['memory of credential at ten hashes', `${resident.toFixed(0)} MiB`, '640 MiB', 'aim < 900 MiB'],
  ]
}

const FLOOD = 200
const LIGHT_MS = 2500

/** What 200 logins at once, from 200 addresses, do to those who are already in. */
const benchFlood = async (bench: Bench, sessions: Tokens[], access_token: string): Promise<string[][]> => {
  const verify = reader(bench.gateway, '/api/v1/resources', access_token)
  const refresh = refresher(bench, sessions)
  const light = async () => {
    const [refreshes, verified] = await Promise.all([closedLoop(2, LIGHT_MS, refresh), closedLoop(2, LIGHT_MS, verify)])
    failIfAny('refresh', refreshes)
    failIfAny('verify', verified)
    return { refresh: quantile(refreshes.times_ms, 0.99), verify: quantile(verified.times_ms, 0.99) }
  }
  const flood = (round: number) =>
    Promise.all(
      Array.from({ length: FLOOD }, async (_, i) => {
        const begun = performance.now()
        const { status } = await login(bench, `ghost-${round}-${i}`, 'Wrong-Horse-7-Battery')
        return { status, ms: performance.now() - begun }
      }),
    )
  type Light = Awaited<ReturnType<typeof light>>
  const rounds: { idle: Light; flooded: Light; answers: Awaited<ReturnType<typeof flood>> }[] = []
  for (let round = 1; round <= ROUNDS; round++) {
    console.error(`${FLOOD} logins at once, round ${round} of ${ROUNDS}`)
    const idle = await light()
    const [flooded, answers] = await Promise.all([light(), flood(round)])
    rounds.push({ idle, flooded, answers })
  }
  const pair = (key: keyof Light) => ({
    flooded: of(rounds, (round) => round.flooded[key]),
    idle: of(rounds, (round) => round.idle[key]),
    ratio: of(rounds, (round) => round.flooded[key] / round.idle[key]),
  })
  const [refreshes, verified] = [pair('refresh'), pair('verify')]
  const answers = rounds.flatMap((round) => round.answers)
  const refused = answers.filter(({ status }) => status === 503).map(({ ms }) => ms)
  const statuses = Object.fromEntries(
    [...new Set(answers.map(({ status }) => status))].map((status) => [
      status,
      answers.filter((answer) => answer.status === status).length,
    ]),
  )
  const slowest = refused.length > 0 ? Math.max(...refused) : 0
  printFigure({
    figure: 'flood',
    refresh_p99_ms: refreshes,
    verify_p99_ms: verified,
    statuses,
    slowest_503_ms: slowest,
    rounds: ROUNDS,
  })
  const row = (what: string, { flooded, idle, ratio }: typeof refreshes) => [
    `${what} p99 beside ${FLOOD} logins`,
    `${flooded.toFixed(1)} ms`,
    `${idle.toFixed(1)} ms idle`,
    `${ratio.toFixed(2)} (aim < 2)`,
  ]
  return [
    row('refresh', refreshes),
    row('verify', verified),
    ['slowest 503 of the flood', `${slowest.toFixed(0)} ms`, '', `aim <= 2100 ms; ${JSON.stringify(statuses)}`],
  ]
}

const WARM = 1500
/** Until the engine has compiled what the arms run; the figures are of a process that has worked for a while. */
const warmUp = async (call: (worker: number) => Promise<boolean>) => {
  for (let done = 0, rounds = 0; done < WARM && rounds < 15; rounds++) {
    done += (await closedLoop(REFRESHERS, 500, call)).count
  }
}

const FIGURES = ['refresh', 'gateway', 'logins', 'flood']

const run = async (bench: Bench, wanted: string[]) => {
  const sessions: Tokens[] = []
  while (sessions.length < REFRESHERS)
    sessions.push(...(await Promise.all([0, 1, 2, 3].map((at) => signIn(bench, at)))))
  const { access_token } = await signIn(bench, 0)
  if (wanted.includes('refresh') || wanted.includes('flood')) await warmUp(refresher(bench, sessions))
  const rows: string[][] = []
  if (wanted.includes('refresh')) rows.push(...(await benchRefresh(bench, sessions)))
  if (wanted.includes('gateway')) rows.push(...(await benchGateway(bench, access_token)))
  if (wanted.includes('logins')) rows.push(...(await benchLogins(bench)))
  if (wanted.includes('flood')) rows.push(...(await benchFlood(bench, sessions, access_token)))
  console.log(`\n${cpus().length} cores, load ${loadavg()[0]?.toFixed(1)}, medians of ${ROUNDS} rounds\n`)
  for (const line of table(['figure', 'ours', 'baseline', 'ratio'], rows)) console.log(line)
}

const upstream = await forkBare<number>('upstream')
const proxy = await forkBare<number>('proxy', [`http://127.0.0.1:${upstream.first}`])
const crypto = await forkBare<string>('crypto', [], { UV_THREADPOOL_SIZE: '14' })
const profile = process.argv.find((argument) => argument.startsWith('--profile='))?.slice('--profile='.length)
const stack = await startStack({
  apps: ['token', 'credential', 'identity', 'session', 'gateway'],
  env_overrides: {
    GATEWAY__UPSTREAM__CATALOG_URL: `http://127.0.0.1:${upstream.first}`,
    GATEWAY__HTTP__TRUSTED_PROXIES: '["127.0.0.0/8"]',
    GATEWAY__LIMITS__API: LIMIT,
    GATEWAY__LIMITS__REFRESH_IP: LIMIT,
    SESSION__LIMITS__REFRESH: LIMIT,
    SESSION__LOCKOUT__FREE: '1000',
    SESSION__CAP__PER_USER: '100',
    CREDENTIAL__HASH__MEMORY_KIB: '65536',
    CREDENTIAL__HASH__TIME: '3',
    CREDENTIAL__HASH__PARALLELISM: '4',
    ...(profile && { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${profile}` }),
  },
})
try {
  await stack.people()
  const open = (url: string) => new Pool(url, { connections: 256, pipelining: 1, headersTimeout: 30_000 })
  const bench: Bench = {
    stack,
    bares: { upstream, proxy, crypto },
    gateway: open(stack.gateway_url.replace('localhost', '127.0.0.1')),
    proxy: open(`http://127.0.0.1:${proxy.first}`),
    users: readDemo(stack.context.dir)?.users ?? [],
  }
  const wanted = process.argv.slice(2).filter((name) => FIGURES.includes(name))
  await run(bench, wanted.length > 0 ? wanted : FIGURES)
  await Promise.all([bench.gateway.close(), bench.proxy.close()])
} finally {
  for (const bare of [upstream, proxy, crypto]) bare.stop()
  await stack.stop()
}
