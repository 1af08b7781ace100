import { cpus, loadavg } from 'node:os'
import { Pool } from 'undici'
import { readDemo } from '../../apps/platform/demo/accounts.ts'
import { table } from '../../apps/shared/data/print.ts'
import { startStack } from '../support/stack.ts'
import { type Bench, REFRESHERS, ROUNDS, type Row, refresher, signIn, type Tokens, warmUp } from './auth/clients.ts'
import { benchFlood } from './auth/flood.ts'
import { benchGateway } from './auth/gateway.ts'
import { benchKeys } from './auth/keys.ts'
import { benchLogins } from './auth/logins.ts'
import { benchMachines, startCi } from './auth/machines.ts'
import { benchRefresh, forkChain } from './auth/refresh.ts'
import { benchRevocation } from './auth/revocation.ts'
import { benchSso, startCorp } from './auth/sso.ts'
import { benchTiming } from './auth/timing.ts'
import { chosen } from './lib/chosen.ts'
import { forkBare } from './lib/fork.ts'

/**
 * `npm run bench:auth`: what login, refresh and the gateway's checks cost, each against a baseline arm measured in the
 * same run, arms interleaved. Also how soon an ended session and a killed key are refused, and whether the time of a
 * login reveals who exists. Generator, servers and subjects share this machine, so rates are lower bounds; only ratios
 * and CPU times carry over to other machines. CPU is user and system time of the processes, from /proc. Arguments name
 * the figures to take (default: all). `--samples=1000` sets how many logins of each kind are timed.
 * `--profile=<folder>` leaves a CPU profile of each app there.
 */
const LIMIT = '1000000/1/1000000'
type Figure = (bench: Bench, sessions: Tokens[], administrator: Tokens) => Promise<Row[]>

const corp = await startCorp()
const ci = await startCi()

/** In the order in which they are taken: the last ones leave keys and users changed. */
const FIGURES: Record<string, Figure> = {
  refresh: benchRefresh,
  sso: benchSso(corp.provider),
  machines: benchMachines(ci),
  gateway: (bench, _sessions, { access_token }) => benchGateway(bench, access_token),
  logins: benchLogins,
  flood: benchFlood,
  revocation: benchRevocation,
  keys: benchKeys,
  timing: (bench) => benchTiming(bench, Number(values.samples ?? 200)),
}
const { wanted, values } = chosen(FIGURES, 'samples', 'profile')

const run = async (bench: Bench) => {
  const sessions: Tokens[] = []
  while (sessions.length < REFRESHERS)
    sessions.push(...(await Promise.all([0, 1, 2, 3].map((at) => signIn(bench, at)))))
  const administrator = await signIn(bench, 0)
  if (wanted.some(([name]) => ['refresh', 'sso', 'machines', 'flood'].includes(name)))
    await warmUp(refresher(bench, sessions))
  const rows: Row[] = []
  for (const [, measure] of wanted) rows.push(...(await measure(bench, sessions, administrator)))
  console.log(`\n${cpus().length} cores, load ${loadavg()[0]?.toFixed(1)}, medians of ${ROUNDS} rounds\n`)
  for (const line of table(['figure', 'ours', 'baseline', 'ratio'], rows)) console.log(line)
}

const upstream = await forkBare<number>('upstream')
const proxy = await forkBare<number>('proxy', [`http://127.0.0.1:${upstream.first}`])
const redis_url = process.env.REDIS_URL ?? ''
const counting = await forkBare<number>('proxy', [`http://127.0.0.1:${upstream.first}`, redis_url])
const chain = await forkChain(redis_url)
const crypto = await forkBare<string>('crypto', [], { UV_THREADPOOL_SIZE: '14' })
const profile = values.profile
const stack = await startStack({
  apps: ['token', 'credential', 'identity', 'session', 'gateway', 'relay'],
  env_overrides: {
    GATEWAY__UPSTREAM__CATALOG_URL: `http://127.0.0.1:${upstream.first}`,
    GATEWAY__HTTP__TRUSTED_PROXIES: '["127.0.0.0/8"]',
    GATEWAY__LIMITS__API: LIMIT,
    GATEWAY__LIMITS__DEVICE: LIMIT,
    GATEWAY__LIMITS__MACHINE: LIMIT,
    GATEWAY__LIMITS__LOGOUT: LIMIT,
    AUTH__PROVIDERS__FILE: corp.file,
    AUTH__MACHINES__ISSUERS: JSON.stringify([ci.issuer]),
    GATEWAY__LIMITS__REFRESH_IP: LIMIT,
    GATEWAY__LIMITS__PAGE_IP: LIMIT,
    GATEWAY__LIMITS__SSO_IP: LIMIT,
    GATEWAY__LIMITS__LOGIN_NAME: LIMIT,
    SESSION__LIMITS__REFRESH: LIMIT,
    SESSION__LOCKOUT__FREE: '1000',
    SESSION__LOCKOUT__CLOSE_AT: '1000000',
    SESSION__CAP__PER_USER: '100',
    CREDENTIAL__HASH__MEMORY_KIB: '65536',
    CREDENTIAL__HASH__TIME: '3',
    CREDENTIAL__HASH__PARALLELISM: '4',
    CREDENTIAL__HASH__PER_KEY: '3',
    ...(profile && { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${profile}` }),
  },
})
try {
  await stack.people()
  const open = (url: string) => new Pool(url, { connections: 256, pipelining: 1, headersTimeout: 30_000 })
  const bench: Bench = {
    stack,
    bares: { upstream, proxy, counting, crypto, chain },
    gateway: open(stack.gateway_url.replace('localhost', '127.0.0.1')),
    proxy: open(`http://127.0.0.1:${proxy.first}`),
    counting: open(`http://127.0.0.1:${counting.first}`),
    chain: open(`http://127.0.0.1:${chain.gateway?.first}`),
    users: readDemo(stack.context.dir)?.users ?? [],
  }
  await run(bench)
  await Promise.all([bench.gateway, bench.proxy, bench.counting, bench.chain].map((pool) => pool.close()))
} finally {
  for (const bare of [upstream, proxy, counting, crypto, ...Object.values(chain)]) bare.stop()
  await stack.stop()
  await corp.stop()
  ci.stop()
}
