import { createPrivateKey, type JsonWebKey } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { createDb } from '../../db/client.ts'
import { createDice } from '../chaos/dice.ts'
import type { Stack } from '../support/stack.ts'
import { until } from '../support/until.ts'
import type { OperationBook } from './books.ts'
import { judgeChain } from './chains.ts'
import {
  cancel,
  chance,
  draw,
  type Model,
  pause,
  resume,
  retry,
  retryOtherwise,
  setInput,
  skip,
  takeBack,
  vote,
} from './commands.ts'
import { type Breach, type Effect, judge, type Start } from './judge.ts'
import { begin } from './operations.ts'
import { decidePatch, propose } from './patches.ts'
import { gather } from './people.ts'
import { setTrap } from './traps.ts'
import { addHosts, createWorld, type World } from './world.ts'

export const VICTIMS = ['worker', 'operations', 'nats', 'relay'] as const
export type Victim = (typeof VICTIMS)[number]
export type Wanted = {
  seed: number
  /** The run continues until this many steps are done and this many operations have begun. */
  steps: number
  operations: number
  /** Hands that act at a time, and operations that are open at a time. */
  hands: number
  open: number
  /** Seconds from one kill to the next; 0: nothing is killed. */
  kill_every_s: number
  victims: readonly Victim[]
  print: (line: string) => void
}
export type Outcome = {
  steps: number
  operations: number
  starts: number
  effects: number
  chains: number
  forged: number
  seconds: number
  breaches: string[]
  by_kind: Map<string, number>
  answers: Map<string, number>
  ends: Map<string, number>
}

const HOSTS = 40
const QUIET_MS = 120_000
/** An operation is cancelled after this many steps. */
const PATIENCE_STEPS = 60

/** Lets a crowd loose on a platform, brings everything to rest, and judges what ran. */
export const run = async (stack: Stack, wanted: Wanted): Promise<Outcome> => {
  const { seed, print } = wanted
  const dice = createDice(seed)
  const [crowd, hosts] = [await gather(stack), await addHosts(stack, HOSTS)]
  const fixed = { from: 0, to: 0, outcome: 'done' as const }
  const breaches: Breach[] = []
  let number = 0
  const model: Model = {
    crowd,
    dice,
    hosts,
    books: {
      people: crowd.books,
      operations: new Map(),
      values: new Map(hosts.map((host) => [host, [{ value: 'c0', act: fixed }]])),
      freezes: [],
      kills: [],
    },
    steps: new Map(),
    answers: new Map(),
    next: () => ++number,
    breach: (operation_id, what) => breaches.push({ operation_id, what, people: [] }),
  }
  const world = createWorld(stack, model)
  const began = performance.now()
  const count = () => [...model.steps.values()].reduce((sum, n) => sum + n, 0)
  const enough = () => count() >= wanted.steps && model.books.operations.size >= wanted.operations
  const watch = setInterval(() => {
    const s = ((performance.now() - began) / 1000).toFixed(0)
    print(`${s} s: ${count()} steps, ${model.books.operations.size} operations`)
  }, 10_000)
  try {
    await Promise.all([
      ...Array.from({ length: wanted.hands }, () => hand(model, world, wanted, enough)),
      killing(world, wanted, dice, enough),
      looking(model, enough),
    ])
    const seconds = (performance.now() - began) / 1000
    print(`${count()} steps in ${seconds.toFixed(0)} s; all is brought to its end`)
    const ends = await settle(model, world)
    const { starts, ledger } = await witnesses(stack)
    breaches.push(...judge(model.books, starts, ledger))
    const chains = await judgeChains(stack, model)
    breaches.push(...chains.breaches)
    return {
      steps: count(),
      operations: model.books.operations.size,
      starts: starts.length,
      effects: ledger.length,
      chains: chains.count,
      forged: chains.tried,
      seconds,
      breaches: breaches.map((breach) => tell(model, wanted, breach)),
      by_kind: model.steps,
      answers: model.answers,
      ends,
    }
  } finally {
    clearInterval(watch)
  }
}

const killing = async (world: World, { kill_every_s, victims }: Wanted, dice: Model['dice'], enough: () => boolean) => {
  if (kill_every_s === 0) return
  for (let n = 0; !enough(); n++) {
    const end = performance.now() + dice.between(0.5, 1.5) * kill_every_s * 1000
    while (performance.now() < end && !enough()) await delay(100)
    if (!enough()) await world.kill(victims[n % victims.length] ?? 'worker')
  }
}

type Step = (model: Model, book: OperationBook) => Promise<unknown>
/** What people do with an operation, and how often: steps that advance it are more frequent than those that stop it. */
const ON_OPERATION: [number, Step][] = [
  [24, (model, book) => vote(model, book)],
  [2, (model, book) => vote(model, book, 'reject')],
  [2, takeBack],
  [5, pause],
  [7, resume],
  [1, cancel],
  [3, (model, book) => setInput(model, book)],
  [3, retry],
  [1, retryOtherwise],
  [1, skip],
  [3, propose],
  [5, (model, book) => decidePatch(model, book, 'approve')],
  [1, (model, book) => decidePatch(model, book, 'reject')],
  // Two people who want opposite things at the same moment.
  [2, (model, book) => Promise.all([pause(model, book), vote(model, book)])],
  // Stopped while what was just allowed is in flight.
  [3, (model, book) => resume(model, book).then(() => pause(model, book))],
  [2, (model, book) => vote(model, book).then(() => pause(model, book))],
  [1, (model, book) => retry(model, book).then(() => pause(model, book))],
  [1, (model, book) => Promise.all([vote(model, book), vote(model, book, 'reject')])],
  [1, (model, book) => Promise.all([vote(model, book), takeBack(model, book)])],
  [1, (model, book) => Promise.all([pause(model, book), resume(model, book)])],
  [1, (model, book) => Promise.all([setInput(model, book), vote(model, book)])],
  [1, (model, book) => Promise.all([propose(model, book), vote(model, book)])],
]

/** One person who acts without a pause, on any operation. */
const hand = async (model: Model, world: World, { open }: Wanted, enough: () => boolean): Promise<void> => {
  const { dice, books } = model
  const around: [number, () => Promise<void>][] = [
    [5, world.moveRight],
    [4, () => world.writeCatalog()],
    [1, world.freeze],
    [1, world.disturbHost],
  ]
  while (!enough()) {
    const running = [...books.operations.values()].filter(({ seen_ended }) => seen_ended === null)
    if (running.length < open && chance(dice, 0.35)) {
      const book = await begin(model)
      if (book && chance(dice, 0.3)) await pause(model, book)
    } else if (running.length === 0 || chance(dice, 0.18)) await draw(dice, around)()
    else if (chance(dice, 0.3)) await setTrap(model, world, running)
    else {
      const book = dice.pick(running)
      if (book.told.length > PATIENCE_STEPS) await cancel(model, book)
      else if (book.status === 'paused' && chance(dice, 0.4)) await resume(model, book)
      else await draw(dice, ON_OPERATION)(model, book)
    }
  }
}

const ENDED = new Set(['succeeded', 'succeeded_with_exceptions', 'failed', 'cancelled', 'timed_out'])
const LOOK_MS = 300
/** A reader looks at the state of every operation: a paused one must do nothing. */
const look = async ({ crowd, books }: Model): Promise<void> => {
  const { outcome, body, from, to } = await crowd.reader.get('/v1/operations?page_size=100')
  if (outcome !== 'done') return
  for (const { operation_id, status } of body.items) {
    const book = books.operations.get(operation_id)
    if (!book) continue
    book.status = status
    if (status === 'paused') book.seen_paused.push({ from, to })
    if (ENDED.has(status)) book.seen_ended ??= to
  }
}
const looking = async (model: Model, over: () => boolean): Promise<void> => {
  for (; !over(); await delay(LOOK_MS)) await look(model)
}

/** Cancels all open operations and waits for their end. */
const settle = async (model: Model, world: World): Promise<Map<string, number>> => {
  await world.mend()
  const ends = new Map<string, number>()
  const books = [...model.books.operations.values()]
  // An undo that a kill interrupted is left to a person: only a forced cancel ends the operation then.
  const isUndoFailed = async (path: string): Promise<boolean> => {
    const { body } = await model.crowd.reader.get(`${path}/nodes?page_size=100`)
    return (body?.items ?? []).some(({ state }: { state: string }) => state === 'compensation_failed')
  }
  await Promise.all(books.filter(({ seen_ended }) => seen_ended === null).map((book) => cancel(model, book)))
  await Promise.all(
    books.map(async (book) => {
      const path = `/v1/operations/${book.operation_id}`
      const ended = async () => {
        if (!ENDED.has(book.status)) book.status = (await model.crowd.reader.get(path)).body?.status ?? ''
        const stays = book.status === 'cancelling' && !(await isUndoFailed(path))
        if (!ENDED.has(book.status) && !stays) await cancel(model, book)
        return ENDED.has(book.status)
      }
      await until(ended, { timeout_ms: QUIET_MS, every_ms: 500 }).catch(() => {
        model.breach(book.operation_id, `it is ${book.status} and does not end, although it is cancelled`)
      })
      ends.set(book.status, (ends.get(book.status) ?? 0) + 1)
    }),
  )
  return ends
}

const PAGE = 10_000
const witnesses = async (stack: Stack): Promise<{ starts: Start[]; ledger: Effect[] }> => {
  const ledger: (Effect & { id: number })[] = []
  for (;;) {
    const reply = await fetch(`${stack.url('fleet')}/ledger?limit=${PAGE}&after=${ledger.at(-1)?.id ?? 0}`)
    const { items } = (await reply.json()) as { items: (Effect & { id: number })[] }
    ledger.push(...items)
    if (items.length < PAGE) break
  }
  const { pool, close } = createDb(stack.database_url, { app: 'model', max: 2, statement_timeout_ms: 60_000 })
  try {
    const { rows } = await pool.query<Start>(
      `select operation_id, node_id, role, attempt, extract(epoch from started_at)::float8 * 1000 as started_at,
         cardinality(fences) as grants from operations.node_attempts order by started_at`,
    )
    return { starts: rows, ledger }
  } finally {
    await close()
  }
}

/** Every chain holds, and no changed chain does. */
const judgeChains = async (stack: Stack, { crowd, books, dice }: Model) => {
  const { body } = await crowd.reader.get('/v1/evidence/keys')
  const keys = body.keys as JsonWebKey[]
  const jwk = JSON.parse(readFileSync(stack.context.keys.evidence_key_file, 'utf8'))
  const key = { kid: String(keys[0]?.kid), private_key: createPrivateKey({ key: jwk, format: 'jwk' }) }
  const breaches: Breach[] = []
  let [count, tried] = [0, 0]
  for (const { operation_id } of books.operations.values()) {
    const file = await crowd.reader.get(`/v1/operations/${operation_id}/evidence?format=jsonl`)
    if (file.outcome !== 'done') {
      breaches.push({ operation_id, what: `its chain cannot be read: ${file.status}`, people: [] })
      continue
    }
    const judged = judgeChain(String(file.body), keys, key, dice)
    count += 1
    tried += judged.tried
    breaches.push(...judged.faults.map((what) => ({ operation_id, what, people: [] })))
  }
  return { breaches, count, tried }
}

/** Prints a breach with the steps of its operation, the rights of its people, and how to reproduce it. */
const tell = (
  { books }: Model,
  { seed, steps, operations }: Wanted,
  { operation_id, what, people }: Breach,
): string => {
  const book = books.operations.get(operation_id)
  const when = (acts: readonly { from: number; to: number; outcome: string }[]) =>
    acts
      .map(
        ({ from, to, outcome }) =>
          `${new Date(from).toISOString().slice(11, 23)}..${Number.isFinite(to) ? new Date(to).toISOString().slice(11, 23) : '?'} ${outcome}`,
      )
      .join('; ')
  const rights = people.flatMap((name) =>
    Object.entries(books.people.get(name)?.parts ?? {})
      .filter(([, { lost }]) => lost.length > 0)
      .map(([part, { lost, given }]) => `  ${name}, ${part}: lost ${when(lost)} | given ${when(given)}`),
  )
  const again = `  again: npm run test:model -- --seed ${seed} --steps ${steps} --operations ${operations}`
  return [
    `operation ${operation_id}: ${what}`,
    ...(book?.told ?? []).map((line) => `  ${line}`),
    ...rights,
    again,
  ].join('\n')
}
