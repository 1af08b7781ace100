import type { HeldOffer } from '../../../db/catalog/held/offers.ts'
import { heldOf } from '../../../db/catalog/held/rows.ts'
import type { ProviderRow } from '../../../db/catalog/providers.ts'
import type { ResourceRow } from '../../../db/catalog/rows.ts'
import type { Tx } from '../../../db/client.ts'
import type { CapabilityChange } from '../../shared/contracts/catalog/commands.ts'
import { pick } from '../../shared/data/pick.ts'
import { equalJson } from '../../shared/data/pointer.ts'
import { AppError, type CodeOf, type Violation } from '../../shared/errors.ts'
import { base32Id } from '../../shared/ids.ts'
import type { JsonObject } from '../document/pointers.ts'
import { violationsOf } from '../document/schemas.ts'
import type { StoredCapability, StoredType, Types } from '../packs/registry.ts'
import { stateViolations } from '../rules/state.ts'
import { usesCapability } from './offers.ts'

export type ProviderEvent = {
  provider: Record<string, unknown>
  change: 'added' | 'updated' | 'withdrawn' | 'claimed' | 'released' | 'expired'
}
type Outcome = { events: ProviderEvent[]; ignored: { pointer: string; code: string }[] }
type Place = { types: Types; row: ResourceRow; type: StoredType }

const POINTER = '/provided_capability_changes'

/** Applies the capabilities that a resource declares; with `replace`, unlisted ones are withdrawn (catalog.md 5). */
export const applyCapabilities = (
  tx: Tx,
  { types, row, type }: Place,
  changes: readonly CapabilityChange[],
  { mode, at, command_id }: { mode: 'merge' | 'replace'; at: string; command_id: string },
): Outcome => {
  const outcome: Outcome = { events: [], ignored: [] }
  if (changes.length === 0 && mode === 'merge') return outcome
  const definitions = definitionsOf(types, type, changes)
  const open = new Map(
    heldOf(tx)
      .offers.of(row.rid)
      .map((provider) => [`${provider.capability_id}@${provider.version}`, provider]),
  )
  const listed = new Set<string>()
  for (const [index, change] of changes.entries()) {
    const definition = definitions[index] as StoredCapability
    const key = `${definition.id}@${change.version}`
    listed.add(key)
    const known = open.get(key)
    if (change.op === 'remove') {
      if (!known) outcome.ignored.push({ pointer: `${POINTER}/${index}`, code: 'not_there' })
      else outcome.events.push(withdraw(tx, known, { at, command_id }))
      open.delete(key)
      continue
    }
    if (!known && change.attributes === undefined) refuse(wrongAttributes(definition, {}, `${POINTER}/${index}`))
    const saved = known
      ? revise(tx, known, change, { at, command_id })
      : add(tx, { types, definition, rid: row.rid }, change, { at, command_id })
    if (saved) {
      outcome.events.push(saved.event)
      open.set(key, saved.row)
    } else outcome.ignored.push({ pointer: `${POINTER}/${index}`, code: 'already_there' })
  }
  if (mode === 'replace') {
    for (const [key, offer] of open) if (!listed.has(key)) outcome.events.push(withdraw(tx, offer, { at, command_id }))
  }
  return outcome
}

/** The definitions that the changes name. Throws one refusal with all violations. */
const definitionsOf = (types: Types, type: StoredType, changes: readonly CapabilityChange[]) => {
  const found = changes.map((change, index) => definitionOf(types, type, change, `${POINTER}/${index}`))
  refuse(found.flatMap((one) => (Array.isArray(one) ? one : [])))
  return found as StoredCapability[]
}

const refuse = (violations: readonly Wrong[]): void => {
  const [first] = violations
  if (!first) return
  throw new AppError('invalid_capability', first.code, `${first.pointer} ${first.message}.`, {
    violations: violations.slice(0, MAX_VIOLATIONS),
    hint: 'GET /v1/resource-types/{type_key} says what the type may provide.',
  })
}

const MAX_VIOLATIONS = 100

type Wrong = Violation & { code: CodeOf<'invalid_capability'> }
const definitionOf = (
  types: Types,
  type: StoredType,
  { op, capability_key, version, attributes }: CapabilityChange,
  at: string,
): StoredCapability | Wrong[] => {
  const wrong = (code: CodeOf<'invalid_capability'>, member: string, message: string) => [
    { pointer: `${at}/${member}`, code, message },
  ]
  if (!types.hasCapability(capability_key)) return wrong('unknown', 'capability_key', 'is not a capability')
  const definition = types.capability(capability_key, version)
  if (!definition) return wrong('version', 'version', 'is not a version of this capability')
  const provides = type.provides.find((use) => use.capability_key === capability_key)
  if (!provides || !types.capability(capability_key, version, provides.version_range))
    return wrong('not_allowed_for_type', 'capability_key', `is not provided by ${type.type_key}`)
  if (op === 'remove' || attributes === undefined) return definition
  const violations = wrongAttributes(definition, attributes as JsonObject, at)
  return violations.length > 0 ? violations : definition
}

const wrongAttributes = ({ attributes_schema }: StoredCapability, attributes: JsonObject, at: string): Wrong[] =>
  [
    ...stateViolations(attributes, `${at}/attributes`),
    ...violationsOf(attributes_schema, attributes, `${at}/attributes`),
  ].map(({ pointer, message }) => ({ pointer, code: 'attributes' as const, message }))

type Told = Pick<ProviderRow, 'provider_id' | 'version' | 'attributes' | 'capacity' | 'priority' | 'expires_at'>

/** A provider as it appears in events. */
export const toldOf = (capability_key: string, row: Told): Record<string, unknown> => ({
  ...pick(row, 'provider_id', 'version', 'attributes', 'capacity', 'priority', 'expires_at'),
  capability_key,
})

const valuesOf = (change: CapabilityChange, known?: ProviderRow) => ({
  attributes: change.attributes ?? known?.attributes ?? {},
  capacity: change.capacity ? { ...known?.capacity, ...change.capacity } : (known?.capacity ?? null),
  priority: change.priority ?? known?.priority ?? 100,
  expires_at: change.expires_at === undefined ? (known?.expires_at ?? null) : change.expires_at,
})

const timeOf = (time: string | null): number | null => (time === null ? null : Date.parse(time))

type When = { at: string; command_id: string }

type Added = { types: Types; definition: StoredCapability; rid: string }

/** A new offer, or the withdrawn one that open claims still name: otherwise its capacity would be given twice. */
const add = (tx: Tx, { types, definition, rid }: Added, change: CapabilityChange, { at, command_id }: When) => {
  const { id: capability_id, capability_key } = definition
  const { offers } = heldOf(tx)
  const claimsOf = (offer: HeldOffer) => offers.claimed(offer, usesCapability(types)).claims
  const [claimed] = offers
    .withdrawn(rid)
    .filter((one) => one.capability_id === capability_id && one.version === change.version && claimsOf(one) > 0)
    .sort((a, b) => claimsOf(b) - claimsOf(a))
  const row: HeldOffer = {
    provider_id: claimed?.provider_id ?? base32Id('prv'),
    rid,
    capability_id,
    capability_key,
    version: change.version,
    ...valuesOf(change),
    withdrawn_at: null,
    swept: false,
    last_command_id: command_id,
    rev: (claimed?.rev ?? 0) + 1,
    valid_from: at,
  }
  offers.save(row)
  const reserved = claimed && pick(offers.claimed(row, usesCapability(types)), 'reserved')
  return { row, event: { provider: { ...toldOf(capability_key, row), ...reserved }, change: 'added' as const } }
}

const revise = (tx: Tx, known: HeldOffer, change: CapabilityChange, { at, command_id }: When) => {
  const values = valuesOf(change, known)
  const { attributes, capacity, priority, expires_at } = known
  // The database spells a time in its own way.
  const same = timeOf(expires_at) === timeOf(values.expires_at)
  if (same && equalJson({ attributes, capacity, priority, expires_at: values.expires_at }, values)) return undefined
  const row = heldOf(tx).offers.revise(known, { ...values, last_command_id: command_id }, at)
  return { row, event: { provider: toldOf(row.capability_key, row), change: 'updated' as const } }
}

/** Ends an offer; its event shows the offer's last state. */
export const withdraw = (tx: Tx, offer: HeldOffer, { at, command_id }: When): ProviderEvent => {
  heldOf(tx).offers.revise(offer, { withdrawn_at: at, last_command_id: command_id }, at)
  return { provider: toldOf(offer.capability_key, offer), change: 'withdrawn' }
}
