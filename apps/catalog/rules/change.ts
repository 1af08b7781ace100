import { canonicalJson, sha256Hex } from '../../shared/data/digest.ts'
import { equalJson } from '../../shared/data/pointer.ts'
import { AppError, type CodeOf, type Violation } from '../../shared/errors.ts'
import { type ChangeSource, isTerminal, refuseTransition } from '../document/lifecycle.ts'
import { type JsonObject, valueAt } from '../document/pointers.ts'
import { violationsOf } from '../document/schemas.ts'
import type { StoredType, Types } from '../packs/registry.ts'
import { secretViolations, stateViolations } from './state.ts'

/** The parts of a resource that its type governs. */
export type Facts = { lifecycle_status: string; desired_state: JsonObject; observed_state: JsonObject }

/** Violations that have their own code. */
const OF_THEIR_OWN = [
  'null_in_state',
  'unsafe_integer',
  'invalid_text',
  'too_deep',
  'secret_reference_required',
  'read_only_field',
  'immutable_field',
  'cardinality',
  'cycle',
  'target_not_found',
  'target_type_not_allowed',
] as const satisfies readonly CodeOf<'validation_error'>[]

/** The refusal for a group of violations; it carries the first one's code. */
export const violated = (violations: Violation[]): AppError => {
  const [first] = violations
  const code = OF_THEIR_OWN.find((known) => known === first?.code) ?? 'schema_violation'
  const detail = `${first?.pointer ?? ''} ${first?.message ?? 'is not valid'}.`
  return new AppError('validation_error', code, detail, { status: 422, violations })
}

const throwIfAny = (violations: Violation[]) => {
  if (violations.length > 0) throw violated(violations)
}

/** The type of a new resource: it must be known, concrete and open for new resources. */
export const typeForCreate = (types: Types, type_key: string): StoredType => {
  const type = types.newest(type_key)
  const refuse = (code: CodeOf<'unsupported_resource_type'>, detail: string) =>
    new AppError('unsupported_resource_type', code, detail, { hint: 'GET /v1/resource-types lists what is supported.' })
  if (!type) throw refuse('unknown', `There is no resource type ${type_key}.`)
  if (type.abstract) throw refuse('abstract', `${type_key} is only a base type; no resource can have it.`)
  if (type.retired || type.status === 'deprecated')
    throw refuse('deprecated_for_create', `${type_key} does not accept new resources.`)
  return type
}

/** The lifecycle state of a new resource: the initial one, or with record_only any non-terminal one. */
export const initialState = (type: StoredType, wanted: string | undefined): string => {
  if (wanted === undefined) return type.lifecycle.initial
  if (type.lifecycle.states.includes(wanted) && !isTerminal(type.lifecycle, wanted)) return wanted
  const allowed = type.lifecycle.states.filter((state) => !isTerminal(type.lifecycle, state))
  throw new AppError('validation_error', 'lifecycle_transition', `A ${type.type_key} cannot start as ${wanted}.`, {
    violations: [{ pointer: '/lifecycle_status', code: 'lifecycle_transition', message: 'is not an initial state' }],
    extra: { allowed },
    hint: `Possible: ${allowed.join(', ')}.`,
  })
}

/** Refuses changes to a resource whose lifecycle has ended, except to its notes. */
export const refuseTerminal = (type: StoredType, lifecycle_status: string, touches: boolean): AppError | undefined =>
  touches && isTerminal(type.lifecycle, lifecycle_status)
    ? new AppError(
        'validation_error',
        'resource_terminal',
        `The resource is ${lifecycle_status} and cannot change any further.`,
      )
    : undefined

/** Refuses an invalid transition of an existing resource; the rules depend on who makes it. */
export const checkTransition = (type: StoredType, from: string, to: string, by: ChangeSource): void => {
  const refusal = refuseTransition(type.lifecycle, from, to, by)
  if (refusal) throw refusal
}

const desiredViolations = (type: StoredType, state: JsonObject): Violation[] => {
  const at = '/desired_state'
  const general = [...stateViolations(state, at), ...secretViolations(type.field_classes.sensitive, state, at)]
  return general.length > 0 ? general : violationsOf(type.desired_state_schema, state, at)
}
const observedViolations = (type: StoredType, state: JsonObject): Violation[] => {
  const general = stateViolations(state, '/observed_state')
  return general.length > 0 ? general : violationsOf(type.observed_state_schema, state, '/observed_state')
}

/**
 * The type version that the state fits: the newest, else the row's own (catalog.md 2, "Lifting"). Throws the violations
 * of the first group that does not fit the newest one.
 */
export const fittingType = (
  types: Types,
  newest: StoredType,
  own_version: number | undefined,
  { desired_state, observed_state }: Pick<Facts, 'desired_state' | 'observed_state'>,
): StoredType => {
  const desired = desiredViolations(newest, desired_state)
  const observed = observedViolations(newest, observed_state)
  if (desired.length === 0 && observed.length === 0) return newest
  const own = own_version === undefined ? undefined : types.version(newest.id, own_version)
  if (own && own.version !== newest.version) {
    if (desiredViolations(own, desired_state).length === 0 && observedViolations(own, observed_state).length === 0)
      return own
  }
  throw violated(desired.length > 0 ? desired : observed)
}

/**
 * The type version that an existing resource's next states fit. A field that the newest version keeps secret takes no
 * new plain text, even in a state that fits only an older one.
 */
export const fittingChange = (
  types: Types,
  newest: StoredType,
  row: { type_version: number; desired_state: unknown },
  after: Pick<Facts, 'desired_state' | 'observed_state'>,
): StoredType => {
  const type = fittingType(types, newest, row.type_version, after)
  const before = row.desired_state as JsonObject
  const moved = newest.field_classes.sensitive.filter(
    (pointer) => !equalJson(valueAt(before, pointer), valueAt(after.desired_state, pointer)),
  )
  throwIfAny(secretViolations(moved, after.desired_state, '/desired_state'))
  checkImmutable(type, before, after.desired_state)
  return type
}

/** Refuses a change to a field that may be set only once. */
const checkImmutable = (type: StoredType, before: JsonObject, after: JsonObject): void => {
  throwIfAny(
    type.field_classes.immutable
      .filter((pointer) => {
        const old = valueAt(before, pointer)
        return old !== undefined && !equalJson(old, valueAt(after, pointer))
      })
      .map((pointer) => ({
        pointer: `/desired_state${pointer}`,
        code: 'immutable_field',
        message: 'cannot change once it is set',
      })),
  )
}

/** Refuses a change to a field that only control-plane commands write. */
export const checkReadOnly = (type: StoredType, before: JsonObject, after: JsonObject): void => {
  throwIfAny(
    type.field_classes.read_only
      .filter((pointer) => !equalJson(valueAt(before, pointer), valueAt(after, pointer)))
      .map((pointer) => ({
        pointer: `/desired_state${pointer}`,
        code: 'read_only_field',
        message: 'is written by operations only',
      })),
  )
}

/** A hash of a resource's natural key, i.e. the values of its identity fields; null while one of them is missing. */
export const identityHash = (type: StoredType, desired_state: JsonObject): Buffer | null => {
  const values = type.identity.map((pointer) => valueAt(desired_state, pointer))
  if (values.length === 0 || values.some((value) => value === undefined)) return null
  return Buffer.from(sha256Hex(canonicalJson([type.type_key, ...values])), 'hex')
}
