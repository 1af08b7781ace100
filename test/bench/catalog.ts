import { randomUUID } from 'node:crypto'
import { cpus, loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { Pool as HttpPool } from 'undici'
import { createCatalogClient } from '../../apps/operations/catalog/client.ts'
import { createCatalogProjection } from '../../apps/operations/catalog/projection.ts'
import { table } from '../../apps/shared/data/print.ts'
import { audienceOf } from '../../apps/shared/service/scopes.ts'
import { createTelemetry } from '../../apps/shared/telemetry.ts'
import { createDb } from '../../db/client.ts'
import { testDatabase } from '../support/database.ts'
import { testServices } from '../support/services.ts'
import { until } from '../support/until.ts'
import { bulkByHand, itemsOf, newStory, turn } from './lib/bulk.ts'
import { byHand } from './lib/by-hand.ts'
import { type CatalogApp, databaseCpu, startApp, startSequencer } from './lib/catalog-app.ts'
import { type Loaded, loadCatalog } from './lib/catalog-data.ts'
import { cpuSince, residentMib } from './lib/cpu.ts'
import { median, quantile } from './lib/graph.ts'
import { type Arm, closedLoop, send } from './lib/load.ts'
import { startPeople } from './lib/people.ts'
import { printFigure } from './lib/print.ts'

/**
 * `npm run bench:catalog -- [--resources 100000] [--relationships 500000] [--clients 8] [--seconds 4] [--seed 1]`: what
 * the catalog's reads, graphs and commands cost, each against the same hand-written SQL in the same run, arms
 * alternating. Generator, app and database share this machine, so rates are lower bounds and every time includes
 * waiting: ratios and CPU mean more than milliseconds. `--profile=<folder>` leaves a CPU profile of the app there.
 */
const { values: given } = parseArgs({
  options: {
    resources: { type: 'string', default: '100000' },
    relationships: { type: 'string' },
    relations: { type: 'string' },
    clients: { type: 'string', default: '8' },
    seconds: { type: 'string', default: '4' },
    seed: { type: 'string', default: '1' },
    profile: { type: 'string' },
    figures: { type: 'string' },
  },
})
const count = (name: string, text: string | undefined, most: number): number => {
  const value = Number(text)
  if (Number.isInteger(value) && value >= 1 && value <= most) return value
  console.error(`--${name} is a whole number from 1 to ${most}, not ${text}.`)
  process.exit(2)
}
const RESOURCES = count('resources', given.resources, 10_000_000)
if (RESOURCES < 1000) {
  console.error('--resources is 1000 at least: every client writes to resources of its own.')
  process.exit(2)
}
const RELATIONSHIPS = count(
  'relationships',
  given.relationships ?? given.relations ?? String(RESOURCES * 5),
  50_000_000,
)
const CLIENTS = count('clients', given.clients, 64)
const MS = count('seconds', given.seconds, 600) * 1000
const SEED = count('seed', given.seed, 999)
const ROUNDS = 2
const WARM_MS = 1500
const MOST_BATCHED = 200
const wanted = (...names: string[]) =>
  given.figures === undefined || given.figures.split(',').some((name) => names.includes(name))

const say = (text: string) => console.error(`${new Date().toISOString().slice(11, 19)} ${text}`)
const ms = (value: number) => `${value < 10 ? value.toFixed(2) : value.toFixed(1)} ms`

type Bench = {
  app: CatalogApp
  http: HttpPool
  sql: pg.Pool
  hand: ReturnType<typeof byHand>
  data: Loaded
  token: () => string
  /** The public listener, and a person's token. */
  people: { http: HttpPool; token: () => string }
  database_cpu: () => number
  /** Versions of services, by place in `data.services`. */
  versions: Int32Array
}

let state = SEED
/** Equal seeds give equal choices. */
const random = (n: number): number => {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
  return Math.floor((state / 4_294_967_296) * n)
}
const anyId = ({ data }: Bench) => `r-${1 + random(data.resources)}`

const request = async ({ http, token }: Bench, method: string, path: string, body?: unknown) => {
  const { status, text } = await send(http, {
    method,
    path: `/internal/v1${path}`,
    headers: { authorization: `Bearer ${token()}`, ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  if (status >= 400)
    throw new Error(`${method} ${path.slice(0, 120)} was answered with ${status}: ${text.slice(0, 300)}`)
  return text
}

type Call = (worker: number) => Promise<boolean>
/** `cpu_ms`: of app and database together. */
type Measured = { arm: Arm; cpu_ms: number; database_ms: number }

const measure = async (bench: Bench, clients: number, call: Call): Promise<Measured> => {
  const app = cpuSince({ app: bench.app.pid })
  const database = bench.database_cpu()
  const arm = await closedLoop(clients, MS, call)
  if (arm.failed > 0) throw new Error(`${arm.failed} of ${arm.count} calls failed`)
  const database_ms = bench.database_cpu() - database
  return { arm, cpu_ms: (app().app ?? 0) + database_ms, database_ms }
}

/** `key`: the argument that selects this figure alone. */
type Figure = { key: string; name: string; aim?: string; clients?: number; ours: Call; hand: Call; each?: number }

/** Runs both arms in turn and returns the row of the table. `each`: the number of commands or nodes in one call. */
const compare = async (bench: Bench, { name, aim = '', clients = CLIENTS, ours, hand, each = 1 }: Figure) => {
  const rounds: { ours: Measured; hand: Measured }[] = []
  // Not measured: the first calls prepare statements and compile code.
  for (const call of [hand, ours]) await closedLoop(clients, WARM_MS, call)
  for (let round = 1; round <= ROUNDS; round++) {
    say(`${name}, round ${round} of ${ROUNDS}`)
    rounds.push({ hand: await measure(bench, clients, hand), ours: await measure(bench, clients, ours) })
  }
  const of = (which: 'ours' | 'hand') => {
    const times = rounds.flatMap((one) => one[which].arm.times_ms)
    const calls = rounds.reduce((sum, one) => sum + one[which].arm.count, 0) * each
    return {
      per_s: median(rounds.map((one) => one[which].arm.per_s * each)),
      p50: quantile(times, 0.5),
      p95: quantile(times, 0.95),
      p99: quantile(times, 0.99),
      cpu_ms: rounds.reduce((sum, one) => sum + one[which].cpu_ms, 0) / calls,
      database_ms: rounds.reduce((sum, one) => sum + one[which].database_ms, 0) / calls,
    }
  }
  const [a, b] = [of('ours'), of('hand')]
  printFigure({
    figure: name,
    clients,
    ours: a,
    by_hand: b,
    ratio: a.per_s / b.per_s,
    ...scale(bench),
    seconds: MS / 1000,
  })
  return [
    [
      name,
      String(clients),
      a.per_s.toFixed(0),
      b.per_s.toFixed(0),
      (a.per_s / b.per_s).toFixed(2),
      `${ms(a.p50)} / ${ms(a.p99)}`,
      `${ms(b.p50)} / ${ms(b.p99)}`,
      `${ms(a.cpu_ms)} / ${ms(b.cpu_ms)}`,
      aim,
    ],
  ]
}
const scale = ({ data }: Bench) => ({ resources: data.resources, relationships: data.relationships, seed: SEED })

const reads = (bench: Bench): Figure[] => {
  const { hand } = bench
  const name = () => `resource ${1 + random(bench.data.resources)}`
  const tokens: (string | null)[] = Array.from({ length: CLIENTS }, () => null)
  return [
    {
      key: 'get',
      name: 'get by id',
      aim: 'p99 <= 5 ms, CPU <= 0.4 ms',
      ours: async () => (await request(bench, 'GET', `/resources/${anyId(bench)}`)).length > 0,
      hand: () => hand.get(anyId(bench)),
    },
    {
      key: 'page',
      name: 'page of 100, walked on',
      aim: 'p99 <= 15 ms',
      ours: async (worker) => {
        const token = tokens[worker]
        const reply = await request(bench, 'GET', `/resources?page_size=100${token ? `&page_token=${token}` : ''}`)
        tokens[worker] = JSON.parse(reply).next_page_token
        return true
      },
      hand: () => hand.page(name()),
    },
    {
      key: 'label',
      name: 'page of 100 by label',
      aim: 'p99 <= 15 ms',
      ours: async () => (await request(bench, 'GET', `/resources?page_size=100&label=team=t${random(97)}`)).length > 0,
      hand: () => hand.label(`t${random(97)}`),
    },
  ]
}

const graphs = (bench: Bench): Figure[] =>
  [
    { nodes: 500, clients: CLIENTS, aim: '' },
    { nodes: 5000, clients: 1, aim: 'p99 <= 25 ms' },
    { nodes: 5000, clients: CLIENTS, aim: '' },
  ].map(({ nodes, clients, aim }) => ({
    key: 'graph',
    name: `graph of ${nodes} nodes`,
    aim,
    clients,
    ours: async () => {
      const query = `root_id=${anyId(bench)}&depth=10&max_nodes=${nodes}&max_edges=20000`
      return (await request(bench, 'GET', `/graphs/resources?${query}`)).length > 0
    },
    hand: async () => (await bench.hand.graph(bench.data.rid_of(anyId(bench)), 4, nodes)) > 0,
  }))

/** In each arm each worker has its own services, so that no command meets another's version. */
const turns = (bench: Bench, arm: 0 | 1) => {
  const { services } = bench.data
  const workers = CLIENTS * 2
  const next = Int32Array.from({ length: workers }, (_, i) => i)
  return (worker: number): number => {
    const slot = worker * 2 + arm
    const place = next[slot] as number
    next[slot] = place + workers < services.length ? place + workers : slot
    return place
  }
}

const commandOf = ({ data, versions }: Bench, place: number) => ({
  command_id: randomUUID(),
  idempotency_key: randomUUID(),
  operation_id: randomUUID(),
  resource_id: data.services[place] as string,
  expected_version: versions[place],
  changes: { observed_state_patch: { endpoints_ready: versions[place] } },
})
const advance = ({ versions }: Bench, place: number) => {
  versions[place] = (versions[place] as number) + 1
}

const commands = (bench: Bench): Figure[] => {
  const [ours, hand] = [turns(bench, 0), turns(bench, 1)]
  const { data, versions } = bench
  // A batch names a resource once, and no other worker's.
  const size = Math.min(MOST_BATCHED, Math.floor(data.services.length / (CLIENTS * 2)))
  const ridAt = (place: number) => data.rid_of(data.services[place] as string)
  return [
    {
      key: 'command',
      name: 'single command',
      aim: 'p99 <= 20 ms, CPU <= 1.2 ms',
      ours: async (worker) => {
        const place = ours(worker)
        const command = commandOf(bench, place)
        await request(bench, 'POST', `/resources/${command.resource_id}/apply-operation-result`, command)
        advance(bench, place)
        return true
      },
      hand: async (worker) => {
        const place = hand(worker)
        const done = await bench.hand.command(ridAt(place), versions[place] as number)
        advance(bench, place)
        return done
      },
    },
    {
      key: 'batch',
      name: `commands in batches of ${size}`,
      aim: '>= 3000/s, CPU <= 1.2 ms',
      each: size,
      ours: async (worker) => {
        const places = Array.from({ length: size }, () => ours(worker))
        const items = places.map((place) => ({ kind: 'apply', command: commandOf(bench, place) }))
        const reply = await request(bench, 'POST', '/resources:batch-apply', { mode: 'independent', items })
        const refused = (JSON.parse(reply) as { results: { status: number }[] }).results.find(
          ({ status }) => status !== 200,
        )
        if (refused) throw new Error(`a command of a batch was refused: ${JSON.stringify(refused).slice(0, 300)}`)
        for (const place of places) advance(bench, place)
        return true
      },
      hand: async (worker) => {
        const places = Array.from({ length: size }, () => hand(worker))
        const items = places.map((place) => ({ rid: ridAt(place), version: versions[place] as number }))
        const done = await bench.hand.batch(items.sort((a, b) => a.rid - b.rid))
        for (const place of places) advance(bench, place)
        return done
      },
    },
  ]
}

const BULK = 400
/** Items that people send, a quarter of each kind. */
const bulk = (bench: Bench): Figure => {
  const { people, sql } = bench
  const segment = () => `segment-${random(bench.data.segments)}`
  const stories = [0, 1].map(() => Array.from({ length: CLIENTS }, newStory))
  const story = (arm: 0 | 1, worker: number) => stories[arm]?.[worker] ?? newStory()
  return {
    key: 'bulk',
    name: `items in requests of ${BULK}`,
    aim: '>= 3000/s on 2 cores',
    clients: Math.min(CLIENTS, 2),
    each: BULK,
    ours: async (worker) => {
      const items = itemsOf(turn(story(0, worker), BULK), segment(), () => anyId(bench))
      const { status, text } = await send(people.http, {
        method: 'POST',
        path: '/v1/resources:bulk?mode=record_only',
        headers: {
          authorization: `Bearer ${people.token()}`,
          'content-type': 'application/json',
          'idempotency-key': randomUUID(),
        },
        body: JSON.stringify({ items }),
      })
      if (status !== 200) throw new Error(`${status}: ${text.slice(0, 500)}`)
      const refused = (JSON.parse(text) as { results: { status: number }[] }).results.find((one) => one.status >= 400)
      if (refused) throw new Error(`an item was refused: ${JSON.stringify(refused).slice(0, 500)}`)
      return true
    },
    hand: (worker) => bulkByHand(sql, turn(story(1, worker), BULK), segment(), () => anyId(bench)),
  }
}

const LAG_SAMPLES = 100
/**
 * From the answer to a command until a graph holds the change, while other clients write; by hand: until the outbox
 * numbers it.
 */
const lag = async (bench: Bench): Promise<string[][]> => {
  say('projection lag beside writers')
  const next = turns(bench, 0)
  let writing = true
  const writers = Array.from({ length: Math.max(1, CLIENTS / 2) }, async (_, worker) => {
    while (writing) {
      const place = next(worker + 1)
      const command = commandOf(bench, place)
      await request(bench, 'POST', `/resources/${command.resource_id}/apply-operation-result`, command)
      advance(bench, place)
    }
  })
  const times = { ours: [] as number[], hand: [] as number[] }
  for (let i = 0; i < LAG_SAMPLES * 2; i++) {
    const place = next(0)
    const command = commandOf(bench, place)
    const reply = await request(bench, 'POST', `/resources/${command.resource_id}/apply-operation-result`, command)
    const { change_token, version } = JSON.parse(reply) as { change_token: string; version: number }
    advance(bench, place)
    const began = performance.now()
    if (i % 2 === 0)
      await request(bench, 'GET', `/graphs/resources?root_id=${command.resource_id}&depth=0&min_change=${change_token}`)
    else await until(() => bench.hand.numbered(command.resource_id, version), { every_ms: 10 })
    times[i % 2 === 0 ? 'ours' : 'hand'].push(performance.now() - began)
  }
  writing = false
  await Promise.all(writers)
  const of = (list: number[]) => ({ p50: quantile(list, 0.5), p99: quantile(list, 0.99) })
  const [a, b] = [of(times.ours), of(times.hand)]
  printFigure({ figure: 'projection lag', ours: a, by_hand: b, samples: LAG_SAMPLES, ...scale(bench) })
  return [
    [
      'projection lag, beside writers',
      String(Math.max(1, CLIENTS / 2)),
      ...['', '', ''],
      `${ms(a.p50)} / ${ms(a.p99)}`,
      `${ms(b.p50)} / ${ms(b.p99)}`,
      '',
      'p99 <= 500 ms',
    ],
  ]
}

/** The load of the graph against reading and discarding the same columns over one connection. */
const warmUp = async (bench: Bench): Promise<string[][]> => {
  const { warm, pid } = bench.app
  const began = performance.now()
  await bench.sql.query(
    `select (select count(resource_id || name) from catalog.resource), (select count(version) from catalog.resource_state),
            (select sum(src + dst + rel_no) from catalog.relationship)`,
  )
  const hand_ms = performance.now() - began
  const [per_node, per_edge] = [warm.bytes / warm.nodes, warm.bytes / warm.edges]
  const rss_mib = residentMib(pid)
  printFigure({ figure: 'warm-up', ...warm, by_hand_ms: hand_ms, per_node, per_edge, rss_mib, ...scale(bench) })
  const row = (name: string, ours: string, hand: string, aim: string) => [name, '', ours, hand, '', '', '', '', aim]
  return [
    row('graph loaded', ms(warm.load_ms), `${ms(hand_ms)} (read only)`, '<= 5 s'),
    row('of it counting what is below each place', ms(warm.count_ms), '', ''),
    row('from start of the process to a warm graph', ms(warm.start_ms), '', '<= 5 s'),
    row('bytes per resource in memory, its edges with it', per_node.toFixed(0), '', ''),
    row('bytes of the graph', `${(warm.bytes / 1_048_576).toFixed(0)} MiB`, '', ''),
    row('resident memory of the app', `${rss_mib.toFixed(0)} MiB`, '', '<= 1 GB'),
  ]
}

/** Building operations' projection of the catalog from scratch over HTTP, against copying the same rows in SQL. */
const rebuild = async (bench: Bench, signer: Parameters<typeof createCatalogClient>[1]): Promise<string[][]> => {
  say("rebuild of operations' projection")
  const database = await testDatabase('operations')
  const { db, close } = createDb(database.url, { app: 'bench', max: 4, statement_timeout_ms: 60_000 })
  try {
    const { log } = createTelemetry('bench', { level: 'silent' })
    const catalog = createCatalogClient(bench.app.internal_url, signer)
    const projection = createCatalogProjection({ db, catalog, log, createIntent: async () => {} })
    const began = performance.now()
    await projection.catchUp()
    const seconds = (performance.now() - began) / 1000
    const copied = performance.now()
    await bench.sql.query(
      `create table catalog.bench_resources as select r.*, s.version, s.lifecycle_status, s.observed_state, s.health_status
       from catalog.resource r join catalog.resource_state s using (rid)`,
    )
    await bench.sql.query('create table catalog.bench_relationships as select * from catalog.relationship')
    const hand = (performance.now() - copied) / 1000
    await bench.sql.query('drop table catalog.bench_resources, catalog.bench_relationships')
    printFigure({ figure: 'rebuild', seconds, by_hand_seconds: hand, ...scale(bench) })
    return [
      [
        'rebuild of a projection, from nothing',
        '',
        `${seconds.toFixed(1)} s`,
        `${hand.toFixed(1)} s (copy in SQL)`,
        '',
        '',
        '',
        '',
        '<= 300 s',
      ],
    ]
  } finally {
    await close()
    await database.drop()
  }
}

const run = async () => {
  const database = await testDatabase('catalog')
  const services = testServices()
  const people = await startPeople(services.registry_file)
  const env = {
    CATALOG__DATABASE__URL: database.url,
    CATALOG__NATS__URL: process.env.NATS_URL ?? '',
    CATALOG__SERVICE__KEY_FILE: services.keyFile('catalog'),
    AUTH__SERVICES__FILE: services.registry_file,
    ...people.env,
  }
  // A first start only registers its types; the data comes later.
  await (await startApp(env, undefined)).stop()
  const began = performance.now()
  const data = await loadCatalog(database.url, { resources: RESOURCES, relationships: RELATIONSHIPS, seed: SEED }, say)
  say(`made in ${((performance.now() - began) / 1000).toFixed(1)} s; the catalog starts`)
  const app = await startApp(env, given.profile)
  const sequencer = await startSequencer(database.url)
  const sql = new pg.Pool({ connectionString: database.url, max: CLIENTS + 2, options: '-c timezone=UTC' })
  const http = new HttpPool(app.internal_url, { connections: CLIENTS * 2, pipelining: 1 })
  const sign = services.signer('demo-control-plane')
  const token = () => sign(audienceOf('catalog'))
  const person = { http: new HttpPool(app.public_url, { connections: CLIENTS, pipelining: 1 }), token: people.token }
  const versions = new Int32Array(data.services.length).fill(1)
  const database_cpu = await databaseCpu(sql)
  const bench: Bench = { app, http, sql, hand: byHand(sql), data, token, people: person, database_cpu, versions }
  try {
    const rows: string[][] = []
    if (wanted('warm-up')) rows.push(...(await warmUp(bench)))
    say('search is being filled')
    const filled = 'select from catalog.search_position where filling_after is null'
    await until(async () => (await sql.query(filled)).rowCount === 1, { timeout_ms: 3_600_000, every_ms: 250 })
    const figures = [
      ...reads(bench).filter(({ key }) => wanted('reads', key)),
      ...graphs(bench).filter(({ key }) => wanted('graphs', key)),
      ...commands(bench).filter(({ key }) => wanted('commands', key)),
      ...[bulk(bench)].filter(({ key }) => wanted('commands', key)),
    ]
    for (const figure of figures) rows.push(...(await compare(bench, figure)))
    if (wanted('lag')) rows.push(...(await lag(bench)))
    if (wanted('rebuild')) rows.push(...(await rebuild(bench, services.signer('operations'))))
    const n = (value: number) => value.toLocaleString('en')
    console.log(
      `\n${n(data.resources)} resources, ${n(data.relationships)} relationships, seed ${SEED}, ${MS / 1000} s an arm and round`,
    )
    console.log(`${cpus().length} cores shared by generator, app and database, load ${loadavg()[0]?.toFixed(1)}\n`)
    const head = [
      'figure',
      'clients',
      'ours/s',
      'by hand/s',
      'ratio',
      'p50 / p99',
      'by hand',
      'CPU each / by hand',
      'aim on 4 cores',
    ]
    for (const line of table(head, rows)) console.log(line)
  } finally {
    await http.close()
    await person.http.close()
    await app.stop()
    await sequencer.stop()
    await people.stop()
    await sql.end()
    services.remove()
    await database.drop()
  }
}

await run()
