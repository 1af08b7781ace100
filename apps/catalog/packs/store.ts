import semver from 'semver'
import { outbox } from '../../../db/catalog/tables.ts'
import {
  hasOpenResources,
  lockPacks,
  readCapabilities,
  readPacks,
  readRelationshipTypes,
  readTypes,
  retireTypes,
  saveCapability,
  savePack,
  saveRelationshipType,
  saveType,
  stateInUse,
} from '../../../db/catalog/types.ts'
import type { Db, Tx } from '../../../db/client.ts'
import { appendOutbox } from '../../../db/outbox.ts'
import type { Clock } from '../../shared/clock.ts'
import { ConfigError } from '../../shared/config.ts'
import type { ResourceType } from '../../shared/contracts/catalog/types.ts'
import { digest } from '../../shared/data/digest.ts'
import { equalJson } from '../../shared/data/pointer.ts'
import { uuidv7 } from '../../shared/ids.ts'
import { isTerminal } from '../document/lifecycle.ts'
import type { TypeModel } from './format.ts'

type StoreOptions = { clock: Clock; allow_change: boolean }
type Packs = Awaited<ReturnType<typeof readPacks>>
/** One load: the definitions of the files, the packs stored before it, and those of which it changes something. */
type Load = StoreOptions & {
  tx: Tx
  model: TypeModel
  stored: Packs
  touched: Set<string>
  isNewer: (pack: string) => boolean
}

/**
 * Stores the packs' definitions under one lock: new versions beside the old ones. An equal version with other content
 * stops the start; a type removed from the files takes no new resources. Returns the packs that changed something; each
 * has emitted `type.pack_loaded`.
 */
export const storePacks = (db: Db, model: TypeModel, options: StoreOptions): Promise<string[]> =>
  db.transaction(async (tx) => {
    await lockPacks(tx)
    const stored = await readPacks(tx)
    const load: Load = { ...options, tx, model, stored, touched: new Set(), isNewer: newerThan(model, stored) }
    await storeTypes(load)
    await storeRelationshipTypes(load)
    await storeCapabilities(load)
    await announce(load)
    return [...load.touched].sort()
  })

type Summed = { checksum: string }
const refuseChanged = ({ allow_change }: Load, known: Summed | undefined, { checksum }: Summed, name: string): void => {
  if (!known || known.checksum === checksum || allow_change) return
  throw new ConfigError(
    `${name} is stored with other content under the same version. Raise its version (or that of the base that changed), or set CATALOG__PACKS__ALLOW_CHANGE=true in development.`,
  )
}

const nextId = (used: Iterable<number>): (() => number) => {
  let last = Math.max(0, ...used)
  return () => ++last
}

type Pack = Pick<Packs[number], 'pack' | 'version'>

/**
 * Whether a newer process than this one has loaded a pack: an older process may start again during a roll-out. A pack
 * that these files lack counts as newer if any other pack is.
 */
const newerThan = ({ packs }: TypeModel, stored: readonly Pack[]): ((pack: string) => boolean) => {
  const isNewer = (row: Pack) => packs.some(({ pack, version }) => pack === row.pack && semver.gt(row.version, version))
  const newer = new Set(stored.filter(isNewer).map(({ pack }) => pack))
  const known = new Set(packs.map(({ pack }) => pack))
  return (pack) => newer.has(pack) || (newer.size > 0 && !known.has(pack))
}

const storeTypes = async (load: Load) => {
  const { tx, model, touched, isNewer } = load
  const rows = await readTypes(tx)
  const ids = new Map(rows.map((row) => [row.type_key, row.id]))
  const fresh = nextId(ids.values())
  for (const document of model.types) {
    const { type_key, version, checksum } = document
    const own = rows.filter((row) => row.type_key === type_key)
    const known = own.find((row) => row.version === version)
    if (known?.checksum === checksum && (!known.retired || isNewer(document.pack))) continue
    refuseChanged(load, known, document, `type ${type_key} version ${version}`)
    const id = ids.get(type_key) ?? fresh()
    const newest = own.at(-1)?.document
    if (newest) await refuseStranding(tx, id, newest, document)
    await saveType(tx, id, document)
    touched.add(document.pack)
  }
  const keys = new Set(model.types.map(({ type_key }) => type_key))
  const gone = rows.filter((row) => !row.retired && !keys.has(row.type_key) && !isNewer(row.document.pack))
  if (gone.length > 0) await retireTypes(tx, [...new Set(gone.map(({ type_key }) => type_key))])
  for (const { document } of gone) touched.add(document.pack)
}

/** Refuses a version of a type that its open resources could not follow. */
const refuseStranding = async (tx: Tx, id: number, newest: ResourceType, next: ResourceType): Promise<void> => {
  const { type_key } = next
  if (!equalJson(newest.identity, next.identity) && (await hasOpenResources(tx, id)))
    throw new ConfigError(`type ${type_key} changes its identity while resources of it exist. Keep the identity.`)
  // An older version decides nothing: each change asks the newest.
  if (next.version < newest.version) return
  const left = openStates(newest).filter((state) => !openStates(next).includes(state))
  const state = left.length > 0 ? await stateInUse(tx, id, left) : undefined
  if (state !== undefined) {
    throw new ConfigError(
      `type ${type_key} leaves resources in lifecycle state ${state}, which its new version lacks or ends. Keep the state, or bring them to another one first.`,
    )
  }
}

const openStates = ({ lifecycle }: ResourceType): string[] =>
  lifecycle.states.filter((state) => !isTerminal(lifecycle, state))

const storeRelationshipTypes = async (load: Load) => {
  const { tx, model, touched, isNewer } = load
  const known = new Map((await readRelationshipTypes(tx)).map((row) => [row.type_key, row]))
  const fresh = nextId([...known.values()].map(({ id }) => id))
  for (const document of model.relationship_types) {
    const row = known.get(document.type_key)
    // Relationship types have no version: they change with their pack's version, and the newest pack's stays.
    if (row && (row.checksum === document.checksum || isNewer(document.pack))) continue
    if (!packIsNew(load, document.pack))
      refuseChanged(load, row, document, `relationship type ${document.type_key} of pack ${document.pack}`)
    await saveRelationshipType(tx, row?.id ?? fresh(), document)
    touched.add(document.pack)
  }
}

const packIsNew = ({ model, stored }: Load, name: string): boolean => {
  const version = model.packs.find(({ pack }) => pack === name)?.version
  return !stored.some((row) => row.pack === name && row.version === version)
}

const storeCapabilities = async (load: Load) => {
  const { tx, model, touched } = load
  const rows = await readCapabilities(tx)
  const ids = new Map(rows.map((row) => [row.capability_key, row.id]))
  const fresh = nextId(ids.values())
  for (const document of model.capabilities) {
    const { capability_key, version, checksum } = document
    const known = rows.find((row) => row.capability_key === capability_key && row.version === version)
    if (known?.checksum === checksum) continue
    refuseChanged(load, known, document, `capability ${capability_key} version ${version}`)
    const id = ids.get(capability_key) ?? fresh()
    ids.set(capability_key, id)
    await saveCapability(tx, id, document)
    touched.add(document.pack)
  }
}

const announce = async ({ tx, model, clock, stored: rows, touched }: Load) => {
  const lost = [...touched].filter((name) => !model.packs.some(({ pack }) => pack === name))
  const last = lost.flatMap(
    (name) => rows.filter(({ pack }) => pack === name).sort((a, b) => b.load_no - a.load_no)[0] ?? [],
  )
  const packs = [
    ...model.packs,
    ...last.map(({ pack, version, document }) => ({ pack, version, title: String(document.title) })),
  ]
  for (const { pack, version, title } of packs) {
    const keys = {
      types: model.types.filter((type) => type.pack === pack).map(({ type_key }) => type_key),
      relationship_types: model.relationship_types.filter((type) => type.pack === pack).map(({ type_key }) => type_key),
      capabilities: model.capabilities.filter((item) => item.pack === pack).map(({ capability_key }) => capability_key),
    }
    if (!touched.has(pack) && rows.some((row) => row.pack === pack && row.version === version)) continue
    touched.add(pack)
    const load_no = Math.max(0, ...rows.filter((row) => row.pack === pack).map((row) => row.load_no)) + 1
    const checksum = digest(
      [model.types, model.relationship_types, model.capabilities].map((list) =>
        list.filter((item) => item.pack === pack).map((item) => item.checksum),
      ),
    )
    const document = { title, keys }
    await savePack(tx, { pack, version, checksum, document, load_no, loaded_at: clock.now().toISOString() })
    await appendOutbox(tx, outbox, {
      event_id: uuidv7(),
      agg_type: 'type',
      agg_id: pack,
      agg_version: load_no,
      type: 'type.pack_loaded',
      payload: {
        resource_id: null,
        type_key: null,
        version: null,
        previous_version: null,
        generation: null,
        actor: 'svc:catalog',
        command_id: null,
        operation_id: null,
        evidence_refs: [],
        pack,
        pack_version: version,
        checksum,
        keys,
      },
    })
  }
}
