import { expiredResources, markSwept, readChecksOf } from '../../db/catalog/health.ts'
import { heldOf } from '../../db/catalog/held/rows.ts'
import { writeHeld } from '../../db/catalog/many/write.ts'
import { expiredClaims, expiredProviders, listOffers, markProvidersSwept, offers } from '../../db/catalog/providers.ts'
import { getResourcesByRid, lockStates } from '../../db/catalog/resources/rows.ts'
import { openStamp } from '../../db/catalog/resources/stamps.ts'
import type { Tx } from '../../db/client.ts'
import { pluck } from '../shared/data/pick.ts'
import { uuidv7 } from '../shared/ids.ts'
import { toldOf } from './capabilities/declare.ts'
import { usesCapability } from './capabilities/offers.ts'
import { tellCapabilities } from './capabilities/tell.ts'
import { makeHere } from './changes/each.ts'
import { holdFor } from './changes/hold.ts'
import type { Cause } from './command/outbox.ts'
import { stampOf } from './command/run.ts'
import type { CatalogDeps } from './deps.ts'
import { settleHealth } from './health/observe.ts'
import { lockResource } from './resources/lock.ts'
import { applyChange } from './resources/write.ts'

/** When a sweep stops early, and how many rows it reads at once. */
export type Sweep = { stopped?: () => boolean; most?: number }
type Due<Row> = {
  /** Returns rows that are due, the oldest first, without those of these ids. */
  list: (without: readonly string[], most: number) => Promise<Row[]>
  idOf: (row: Row) => string
  run: (...rows: Row[]) => Promise<unknown>
  /** How many `run` takes at once. */
  together?: number
}

const failing = Symbol('failing')
/** Handles everything that is due. A row that cannot be handled waits for the next sweep, and blocks no other. */
const sweep = async <Row>(
  deps: CatalogDeps,
  { list, idOf, run, together = 1 }: Due<Row>,
  { stopped = () => false, most = 200 }: Sweep,
): Promise<void> => {
  const failed: string[] = []
  let rows: Row[]
  do {
    rows = await list(failed, most)
    for (let at = 0; at < rows.length; at += together) {
      const set = rows.slice(at, at + together)
      // What fails together is tried alone, so that only the culprit waits.
      const alone = set.length === 1 || (await run(...set).catch(() => failing)) === failing ? set : []
      for (const row of alone) {
        await run(row).catch((err) => {
          failed.push(idOf(row))
          deps.telemetry.log.warn({ err, expired: row }, 'an expired row could not be swept')
        })
      }
    }
    if (rows.length > 0) deps.wake()
  } while (rows.length > 0 && !stopped())
}

/** How many resources one transaction sweeps. */
const TOGETHER = 200

/** Stores expired checks and emits their events. */
export const sweepHealth = (deps: CatalogDeps, options: Sweep = {}): Promise<void> => {
  const now = deps.clock.now().toISOString()
  const list = (without: readonly string[], most: number) => expiredResources(deps.db, now, most, without)
  type Due = Awaited<ReturnType<typeof list>>[number]
  const run = (...due: Due[]) =>
    deps.db.transaction(async (tx) => {
      const rids = pluck(due, 'rid')
      const view = await holdFor(
        tx,
        deps.registry.types,
        due.map(({ resource_id }) => ({ resource_id, edges: [] })),
      )
      await markSwept(tx, rids, now)
      const checks = Map.groupBy(await readChecksOf(tx, rids), ({ rid }) => rid)
      for (const row of await getResourcesByRid(view.tx, rids))
        await settleHealth(view.tx, deps, row, causeOf(now, 'health.sweep'), 'expired', { checks: checks.get(row.rid) })
      await writeHeld(tx, view.held)
    })
  return sweep(deps, { list, idOf: ({ rid }) => rid, run, together: TOGETHER }, options)
}

/** Emits once for each provider that it expired (`capability.changed`); every read computes staleness itself. */
export const sweepProviders = (deps: CatalogDeps, options: Sweep = {}): Promise<void> => {
  const { types } = deps.registry
  const now = deps.clock.now().toISOString()
  const list = (without: readonly string[], most: number) => expiredProviders(deps.db, now, most, without)
  const run = (rid: string) =>
    deps.db.transaction(async (tx) => {
      await lockStates(tx, new Map([[rid, 'no key update']]))
      const ids = await markProvidersSwept(tx, rid, now)
      const [owner] = await getResourcesByRid(tx, [rid])
      if (!owner || ids.length === 0) return
      const rows = await listOffers(tx, usesCapability(types), [offers.ids(ids)], ids.length)
      const providers = rows.map((row) => ({ provider: toldOf(row.capability_key, row), change: 'expired' as const }))
      await tellCapabilities(tx, types, owner, providers, causeOf(now, 'capabilities.sweep'))
    })
  return sweep(deps, { list, idOf: (rid) => rid, run }, options)
}

/** Ends expired reservations, each as a change of the resource that made it. */
export const sweepReservations = (deps: CatalogDeps, options: Sweep = {}): Promise<void> => {
  const { types } = deps.registry
  const now = deps.clock.now().toISOString()
  const reltype_id = usesCapability(types)
  type Claim = Awaited<ReturnType<typeof expiredClaims>>[number]
  const list = (without: readonly string[], most: number) => expiredClaims(deps.db, reltype_id, now, most, without)
  const run = ({ src, dst, resource_id, target_id }: Claim) => {
    const relationship_changes = [{ op: 'remove' as const, type_key: 'uses_capability', target_id }]
    const end = async (tx: Tx) => {
      const locked = await lockResource(tx, types, resource_id, { relationship_changes, read: 'all' })
      // It may have been confirmed or ended meanwhile.
      const until = heldOf(tx).edges.get({ src, reltype_id, dst })?.properties.expires_at
      if (typeof until === 'string' && until <= now)
        await applyChange(tx, deps, locked, {}, causeOf(stampOf(deps)(locked.row), 'reservations.sweep'))
    }
    const change = { wish: { resource_id, edges: relationship_changes }, run: end }
    return deps.db.transaction(async (tx) => {
      await openStamp(tx, deps.clock.now())
      return makeHere(tx, types, change)
    })
  }
  return sweep(deps, { list, idOf: ({ rel_no }) => rel_no, run }, options)
}

/** The cause of a change by time alone. */
const causeOf = (at: string, action: string): Cause => ({
  actor: 'svc:catalog',
  roles: [],
  source: 'operation',
  action,
  command_id: uuidv7(),
  operation_id: null,
  request_id: null,
  reason: null,
  evidence_refs: [],
  at,
})
