import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ensureAccounts } from '../demo/accounts.ts'
import { hostNames, placeOf, register, seedCatalog } from '../demo/catalog.ts'
import { type Account, ApiError, type Person, signIn, waitUntil } from '../demo/client.ts'
import { createFleetClient } from '../demo/fleet.ts'
import {
  approveGate,
  readOperation,
  releaseIntent,
  rotateIntent,
  startOperation,
  waitForEnd,
  waitForGate,
} from '../demo/operations.ts'
import { openWorld, type World } from './world.ts'

const HOSTS = 4
const LOST = ['lost-1', 'lost-2', 'lost-3', 'lost-4', 'lost-5']
/** A drill may run beside much other work: its checks judge what happens, not how soon. */
const SOON_MS = 180_000

/**
 * `restore-drill [--into DIR]`: a complete restore on a separate platform: saves the database, changes everything that
 * can change, restores the old one, accepts it, reconciles and verifies. A running platform is not touched. Exits 3 if
 * anything of the lost future is still believed.
 */
export const restoreDrill = async (into: string | undefined): Promise<number> => {
  const dir = into ?? join(mkdtempSync(join(tmpdir(), 'signalbox-drill-')), 'platform')
  let failed = 0
  const step = async <T>(what: string, act: () => Promise<T>): Promise<T> => {
    const started = performance.now()
    try {
      const result = await act()
      console.log(`ok    ${what} (${((performance.now() - started) / 1000).toFixed(1)} s)`)
      return result
    } catch (error) {
      failed += 1
      console.log(`FAIL  ${what}: ${(error as Error).message}`)
      throw new Stopped()
    }
  }
  /** A failed check does not stop the ones after it. */
  const check = (what: string, act: () => Promise<unknown>) => step(what, act).catch(ignoreStopped)
  let world: World | undefined
  try {
    const open = await step('a platform of its own is up', () => openWorld(dir))
    world = open
    await story(open, dir, step, check)
  } catch (error) {
    ignoreStopped(error)
  } finally {
    await world?.close()
    if (!into) rmSync(join(dir, '..'), { recursive: true, force: true })
  }
  console.log(failed === 0 ? 'The drill held.' : `The drill failed. Failed steps: ${failed}.`)
  return failed === 0 ? 0 : 3
}

const soonIs = <T>(what: string, read: () => Promise<T>, done: (value: T) => boolean) =>
  waitUntil(what, read, done, SOON_MS)

class Stopped extends Error {}
const ignoreStopped = (error: unknown) => {
  if (!(error instanceof Stopped)) throw error
}

type Step = <T>(what: string, act: () => Promise<T>) => Promise<T>
type Check = (what: string, act: () => Promise<unknown>) => Promise<unknown>

const story = async (world: World, dir: string, step: Step, check: Check): Promise<void> => {
  const { people, paused, ended } = await step('people, hosts, and two operations that wait at their gates', () =>
    prepare(world, dir),
  )
  await step('the database is saved', world.backup)
  const saved_at = Date.now()
  const before = await beliefOf(world)
  const lost = await step(
    'then: hosts deployed over a decided gate, operations ended, paused and begun, a person disabled, a key killed, 5 resources made',
    () => goOn(world, people, paused, ended),
  )
  const failed_at = Date.now()
  await step('the saved database is put back, all else stays', world.restore)
  console.log(
    `      the data of ${Math.round((failed_at - saved_at) / 1000)} s is lost; all apps are up after ${Math.round((Date.now() - failed_at) / 1000)} s`,
  )

  const told: Told = { world, people, paused, ended, lost, step, check }
  await acceptance(told, before)
  await reconciliation(told)
  await check('verify-audit', () => exits(world, 0, 'verify-audit'))
  await check('rebuild catalog: the projection is what the catalog says', () => exits(world, 0, 'rebuild', 'catalog'))
  await check('rebuild operations: the read models are what their events say', () =>
    exits(world, 0, 'rebuild', 'operations'),
  )
}

type Told = {
  world: World
  people: People
  paused: string
  ended: string
  lost: Awaited<ReturnType<typeof goOn>>
  step: Step
  check: Check
}

/** Checks that the lost future is not believed, before and after a person accepts the restore. */
const acceptance = async ({ world, people, paused, lost, step, check }: Told, before: Belief): Promise<void> => {
  await check('everyone sees it: health says restored', () =>
    soonIs(
      'health',
      () => restoredIn(world),
      (all) => all,
    ),
  )
  await check('a start is refused, a stop is taken', () => refusesStart(world, people, paused))
  await check('nothing of the lost future is believed before a person accepts', () => believes(world, before))
  await check('accept-restore --dry-run says what is lost and changes nothing', async () => {
    const { code, text } = await world.ops('accept-restore', '--dry-run')
    expect(code === 3, text)
    for (const id of [...LOST, lost.host, lost.olga, lost.kid, lost.released, lost.begun])
      expect(text.includes(id), `${id} is not listed:\n${text}`)
  })
  await step('accept-restore', () => exits(world, 0, 'accept-restore'))
  await check('nothing of it is believed afterwards', () => believes(world, before))
  await check('who was disabled stays out', async () => {
    const refused = await refusalOf(signIn(world.gateway_url, people.accounts.olga))
    expect(refused instanceof ApiError && refused.status === 401, `olga signs in: ${String(refused)}`)
  })
  await check('a key that was killed is killed', async () => {
    const [key] = await world.query<{ status: string }>(`select status from token.keys where kid = '${lost.kid}'`)
    expect(key?.status === 'killed', `key ${lost.kid} is ${key?.status ?? 'gone'}`)
  })
}

/** Checks that engine, events and relay agree with the restored rows again. */
const reconciliation = async ({ world, people, paused, ended, lost, check }: Told): Promise<void> => {
  await check(
    'reconcile names the workflow without a row, the one ahead of its row, and the row without a workflow',
    async () => {
      const { code, text } = await world.ops('reconcile')
      expect(code === 3, text)
      expect(new RegExp(`${lost.begun} .*without a row`).test(text), text)
      expect(new RegExp(`${paused} .*ahead of its row`).test(text), text)
      // Operations looks for closed workflows too, and may have found this one first.
      const settled = isEngineLost(await readOperation(people.eva, ended))
      expect(settled || new RegExp(`${ended} .*closed`).test(text), text)
    },
  )
  await check('reconcile --apply settles them', async () => {
    await exits(world, 3, 'reconcile', '--apply')
    for (const id of [paused, ended])
      await soonIs('paused as engine_lost', () => readOperation(people.eva, id), isEngineLost)
    await soonIs(
      'nothing left over',
      () => world.ops('reconcile'),
      ({ code }) => code === 0,
    )
  })
  await check('events go out again: what is made now reaches operations', async () => {
    await register(people.ada, placeOf('region', 'after', { code: 'after' }))
    await soonIs(
      'the projection',
      () => world.query(`select 1 from operations.catalog_resources where resource_id = 'after'`),
      (rows) => rows.length === 1,
    )
  })
  await check('a relay that begins anew finds nothing lost', async () => {
    await world.app('relay').stop()
    await world.app('relay').start()
    const active = /^signalbox_relay_active\{schema="operations"[^}]*\} 1$/m
    const ahead = /^signalbox_broker_ahead\{[^}]*\} 1$/m
    await soonIs(
      'the relay',
      () => metricsOf(world, 'relay'),
      (text) => active.test(text) && !ahead.test(text),
    )
    expect(!(await restoredIn(world)), 'health still says restored')
  })
}

const expect = (holds: boolean, otherwise: string): void => {
  if (!holds) throw new Error(otherwise)
}
const refusalOf = (asked: Promise<unknown>): Promise<unknown> =>
  asked.then(
    () => undefined,
    (error: unknown) => error,
  )
const exits = async (world: World, wanted: number, ...args: string[]) => {
  const { code, text } = await world.ops(...args)
  expect(code === wanted, `exit code ${code}:\n${text}`)
}
const isEngineLost = (operation: unknown) => (operation as { pause_reason?: string }).pause_reason === 'engine_lost'

type People = { ada: Person; olga: Person; eva: Person; accounts: Record<string, Account> & { olga: Account } }

const prepare = async (world: World, dir: string) => {
  const { users } = await ensureAccounts(world.gateway_url, dir)
  const accounts = Object.fromEntries(users.map((user) => [user.username, user])) as People['accounts']
  const [ada, olga, eva] = (await Promise.all(
    ['ada', 'olga', 'eva'].map((name) => signIn(world.gateway_url, accounts[name] as Account)),
  )) as [Person, Person, Person]
  await seedCatalog(ada, createFleetClient(world.url('fleet')), HOSTS, () => {})
  const us1 = hostNames('us1', HOSTS)
  const begin = async (host: string) => {
    const intent = rotateIntent(`rotate the certificate of ${host}`, [host])
    const { operation_id } = await startOperation(olga, `rotate ${host}`, intent)
    await waitForGate(eva, operation_id)
    return operation_id
  }
  const [paused, ended] = [await begin(us1[0] ?? ''), await begin(us1[1] ?? '')]
  return { people: { ada, olga, eva, accounts }, paused, ended }
}

/** The future that will be lost. Operations is down at its end, so its unread events wait in the stream. */
const goOn = async (world: World, { ada, olga, eva }: People, paused: string, ended: string) => {
  const eu1 = hostNames('eu1', HOSTS)
  const host = eu1[0] ?? ''
  const release = releaseIntent('web 2.4.0 on eu1', eu1, '2.4.0')
  const { operation_id: released } = await startOperation(olga, 'release eu1', release)
  await approveGate(eva, released, await waitForGate(eva, released), 'The canary looks good.')
  const { status } = await waitForEnd(eva, released)
  expect(status === 'succeeded', `the release ended ${status}`)
  const { operation_id: begun } = await startOperation(olga, 'rotate eu1', rotateIntent('rotate certificates eu1', eu1))
  await waitForGate(eva, begun)
  await approveGate(eva, ended, await waitForGate(eva, ended), 'It ends soon.')
  await waitForEnd(eva, ended)
  await olga.post(`/v1/operations/${paused}/pause`, { reason: 'looking at something' })
  await soonIs(
    'the pause',
    () => readOperation(eva, paused),
    ({ status }) => status === 'paused',
  )
  const { items } = await ada.get<{ items: { id: string; username: string }[] }>('/v1/admin/users?q=olga')
  const id = items.find(({ username }) => username === 'olga')?.id ?? ''
  await ada.post(`/v1/admin/users/${id}/disable`, { reason: 'left' })
  const [next] = await world.query<{ kid: string }>(`select kid from token.keys where status = 'next'`)
  const kid = next?.kid ?? ''
  const killed = await world.admin('token', 'kill-key', kid)
  expect(killed.code === 0, killed.text)
  await world.app('operations').stop()
  for (const id of LOST) await register(ada, placeOf('region', id, { code: id }))
  await soonIs(
    'all events out',
    () => world.query('select 1 from catalog.outbox where published_at is null'),
    (rows) => rows.length === 0,
  )
  await soonIs(
    'an anchor of it all',
    () => world.query('select 1 from identity.user_events where seal_seq is null'),
    (rows) => rows.length === 0,
  )
  await world.forgetConsumer('CATALOG', 'operations-catalog')
  return { released, begun, host, olga: id, kid }
}

type Belief = Map<string, string>

/** Operations' view of the catalog: resources with their versions. */
const beliefOf = async (world: World): Promise<Belief> => {
  const rows = await world.query<{ resource_id: string; version: string }>(
    'select resource_id, version from operations.catalog_resources',
  )
  return new Map(rows.map(({ resource_id, version }) => [resource_id, version]))
}

/** Checks that operations' view is unchanged although the consumers have had the lost events for some time. */
const believes = async (world: World, before: Belief) => {
  await soonIs(
    'dead letters',
    () => world.ops('dead-letters'),
    ({ code }) => code === 0,
  )
  const now = await beliefOf(world)
  const wrong = [...new Set([...before.keys(), ...now.keys()])]
    .filter((id) => before.get(id) !== now.get(id))
    .map((id) => `${id} at version ${now.get(id) ?? 'none'} instead of ${before.get(id) ?? 'none'}`)
  expect(wrong.length === 0, `operations has ${wrong.join(', ')}`)
}

const metricsOf = async (world: World, app: string): Promise<string> =>
  (await fetch(`${world.internal(app)}/metrics`)).text()

const restoredIn = async (world: World): Promise<boolean> => {
  const said = ['operations', 'catalog'].map(async (name) => {
    const answer = await fetch(`${world.internal(name)}/health/ready`)
    const { status, checks } = (await answer.json()) as { status: string; checks: Record<string, { ok: boolean }> }
    return status === 'degraded' && checks.restore?.ok === false
  })
  return (await Promise.all(said)).every(Boolean)
}

const refusesStart = async (world: World, { accounts }: People, waiting: string) => {
  const olga = await signIn(world.gateway_url, accounts.olga)
  const intent = releaseIntent('web 2.4.1 on eu1', hostNames('eu1', HOSTS), '2.4.1')
  const refused = await refusalOf(startOperation(olga, 'while restored', intent))
  expect(refused instanceof ApiError && refused.body.code === 'restored', `the start came to ${String(refused)}`)
  const { status } = await olga.post(`/v1/operations/${waiting}/pause`, { reason: 'the database was restored' })
  expect(status < 300, `the pause came to ${status}`)
}
