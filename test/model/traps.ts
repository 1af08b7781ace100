import { setTimeout as delay } from 'node:timers/promises'
import { until } from '../support/until.ts'
import type { GateBook, OperationBook } from './books.ts'
import {
  cancel,
  chance,
  decide,
  draw,
  type Model,
  pause,
  type Read,
  readGate,
  resume,
  retry,
  setInput,
  vote,
} from './commands.ts'
import { begin } from './operations.ts'
import { GIVER, VOTERS } from './people.ts'
import type { World } from './world.ts'

/**
 * Moments that chance alone seldom produces: each lets something that was true a moment ago reach one guard, which must
 * refuse it. The judge decides whether it did. `no chance`: the operation is not at such a moment.
 */
type Trap = (model: Model, world: World, book: OperationBook) => Promise<unknown | 'no chance'>

/** People who may vote at this gate and have every right now, in random order. */
const eligible = ({ dice, books }: Model, world: World, book: OperationBook, { group }: GateBook): string[] =>
  VOTERS.filter(
    (name) =>
      !book.involved.includes(name) &&
      world.hasAll(name) &&
      (group === null || books.people.get(name)?.group === group),
  )
    .map((name) => ({ name, at: dice.between(0, 1) }))
    .sort((a, b) => a.at - b.at)
    .map(({ name }) => name)

const WAITING = { among: ['waiting'] }
const anyone = ({ dice }: Model) => dice.pick(VOTERS)

/** As many votes as the gate requires. */
const approve = async (model: Model, world: World, book: OperationBook, read: Read): Promise<void> => {
  for (const who of eligible(model, world, book, read.gate)) {
    const { body } = await decide(model, book, who, read)
    if (body?.status === 'approved') return
  }
}

/** A host is frozen before the node that waits for it is allowed, or while that is in flight. */
const cold: Trap = async (model, world, book) => {
  const { dice } = model
  const read = await readGate(model, book, anyone(model), WAITING)
  const [guarded] = read?.gate.guards ?? []
  const host = guarded === undefined ? undefined : book.nodes.get(guarded)?.host
  if (!read || host === undefined) return 'no chance'
  if (chance(dice, 0.5)) return world.freezeHost(host).then(() => approve(model, world, book, read))
  const going = approve(model, world, book, read)
  await delay(dice.between(0, 150))
  await world.stalled(dice.pick(['worker', 'catalog']), () => world.freezeHost(host))
  return going
}

/** Stopped while what was just allowed is on its way to its claim. */
const onTheWay: Trap = async (model, world, book) => {
  const { dice } = model
  const read = await readGate(model, book, anyone(model), WAITING)
  if (!read && chance(dice, 0.6)) return 'no chance'
  const going = read
    ? approve(model, world, book, read)
    : dice
        .pick([vote, retry, resume, resume])(model, book)
        .then(() => {})
  // A resume without an answer would excuse what begins.
  if (!read) await going
  await delay(dice.between(0, 150))
  await world.stalled(dice.pick(['worker', 'catalog']), () => dice.pick([pause, pause, pause, cancel])(model, book))
  return going
}

/** Votes on paper that was read before other inputs were stated, in the round that is open now. */
const oldPaper: Trap = async (model, world, book) => {
  const read = await readGate(model, book, anyone(model), WAITING)
  const nodes = [...book.nodes.values()].filter(({ node_id, stated }) => stated && read?.paper.has(node_id))
  if (!read || nodes.length === 0) return 'no chance'
  await setInput(model, book, model.dice.pick(nodes))
  const now = await readGate(model, book, anyone(model), { ...WAITING, only: read.gate.gate_id })
  return now && approve(model, world, book, { ...read, round: now.round })
}

/** The catalog changes a target while its news is held up, and then the node is released. */
const oldTarget: Trap = async (model, world, book) => {
  const read = await readGate(model, book, anyone(model), WAITING)
  const nodes = [...book.nodes.values()].filter(({ node_id, stated }) => !stated && read?.gate.guards.includes(node_id))
  if (!read || nodes.length === 0) return 'no chance'
  return world.stalled('nats', async () => {
    await world.writeCatalog(model.dice.pick(nodes).host, 0)
    await approve(model, world, book, read)
    await delay(600)
  })
}

/** The same between a plan and its start. */
const oldPlan = async (model: Model, world: World): Promise<unknown> =>
  begin(model, {
    between: (book, start) => {
      const node = [...book.nodes.values()].find(({ stated }) => !stated)
      if (!node) return start()
      return world.stalled('nats', () => world.writeCatalog(node.host, 0).then(start))
    },
  })

/** A voter loses the right while the news of it is held up, and another person's vote completes the quorum. */
const lostMeanwhile: Trap = async (model, world, book) => {
  const read = await readGate(model, book, anyone(model), WAITING)
  if (!read || read.gate.quorum < 2) return 'no chance'
  const [one, other] = eligible(model, world, book, read.gate)
  if (!one || !other) return 'no chance'
  return world.withRights([one, other], async () => {
    const { outcome } = await decide(model, book, one, read)
    if (outcome !== 'done') return
    const part = model.dice.pick(
      read.gate.group === null ? (['role', 'account'] as const) : (['role', 'group'] as const),
    )
    await world.stalled('nats', async () => {
      await world.lose(one, part)
      await decide(model, book, other, read)
    })
  })
}

/** A first node starts on votes whose voters lose the right while it runs; the second starts after that. */
const lostSince = async (model: Model, world: World): Promise<unknown> => {
  const book = await begin(model, { chain: true })
  const first = book?.nodes.get('n0')
  if (!book || !first) return
  const waits = async () => Boolean(await readGate(model, book, 'aud', WAITING))
  await until(waits, { timeout_ms: 5000, every_ms: 100 }).catch(() => {})
  const read = await readGate(model, book, 'aud', WAITING)
  const voters = read ? eligible(model, world, book, read.gate).slice(0, read.gate.quorum) : []
  if (!read || voters.length < read.gate.quorum) return
  await world.withRights(voters, async () => {
    await world.slow(first.host, 1500)
    for (const who of voters) await decide(model, book, who, read)
    const state = async () =>
      (await model.crowd.of('aud').get(`/v1/operations/${book.operation_id}/nodes?page_size=50`)).body?.items?.find(
        ({ node_id }: { node_id: string }) => node_id === 'n0',
      )?.state
    const begun = async () => ['running', 'succeeded'].includes(await state())
    await until(begun, { timeout_ms: 5000, every_ms: 50 }).catch(() => {})
    await pause(model, book)
    await world.slow(first.host, 0)
    for (const who of voters)
      await world.lose(who, read.gate.group === null ? 'role' : model.dice.pick(['role', 'group']))
    await delay(5500)
    await resume(model, book)
    await delay(1000)
  })
}

/** Someone who takes part gives a voter the right again, and that voter votes. */
const gift: Trap = async (model, world, book) => {
  if (!book.involved.includes(GIVER)) return 'no chance'
  const read = await readGate(model, book, anyone(model), WAITING)
  const [who] = read ? eligible(model, world, book, read.gate) : []
  if (!read || !who) return 'no chance'
  const part = read.gate.group === null ? 'role' : model.dice.pick(['role', 'group'] as const)
  return world.withRights([who], async () => {
    await world.lose(who, part)
    await world.regain(who, part, GIVER)
    // Longer than the maximum age of a proof.
    await delay(5500)
    await decide(model, book, who, read)
    await world.lose(who, part)
  })
}

const TRAPS: [number, Trap][] = [
  [5, onTheWay],
  [3, cold],
  [5, oldPaper],
  [4, oldTarget],
  [2, (model, world) => oldPlan(model, world)],
  [4, lostMeanwhile],
  [1, (model, world) => lostSince(model, world)],
  [4, gift],
]
const TRIES = 8

/** Sets a trap on the first of some operations that is at such a moment. */
export const setTrap = async (model: Model, world: World, running: readonly OperationBook[]): Promise<void> => {
  const trap = draw(model.dice, TRAPS)
  for (let n = 0; n < TRIES; n++) if ((await trap(model, world, model.dice.pick(running))) !== 'no chance') return
}
