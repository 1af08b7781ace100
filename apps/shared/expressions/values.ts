import { equalJson, isObject, pointerOf, readPointer } from '../data/pointer.ts'
import { CelError, compileCel } from './cel.ts'

/**
 * Values of procedures (operations.md 4.1 "Values"): plain JSON with the forms below, each an object of one member. A
 * plan keeps only forms that need dispatch: references to outputs, joins of them, secrets, and quoted data.
 */
const FORMS = new Set(['$from', '$join', '$cel', '$each', '$secret', '$$'])
export const PLAN_ROOTS = ['target', 'after', 'params', 'plan', 'batch'] as const

/** A value that cannot be computed: its reference is unknown, or its form is invalid. `pointer` says where it is. */
export class ValueError extends Error {
  readonly code: 'unknown_reference' | 'expression_error' | 'malformed'
  readonly pointer: string

  constructor(code: ValueError['code'], pointer: string, message: string) {
    super(message)
    this.name = 'ValueError'
    this.code = code
    this.pointer = pointer
  }
}

/** `each`: its target is each of the plan's. */
export type Reference = { root: string; pointer: string; text: string; at: string; each?: true }

/** Splits "target/desired_state/release" into its root and the pointer below it. */
const parseReference = (text: unknown, at: string): Reference => {
  if (typeof text !== 'string' || text === '')
    throw new ValueError('malformed', at, '"$from" needs a string such as "target/desired_state/release".')
  const cut = text.indexOf('/')
  return { root: cut < 0 ? text : text.slice(0, cut), pointer: cut < 0 ? '' : text.slice(cut), text, at }
}

const formOf = (value: unknown): [string, unknown] | undefined => {
  if (!isObject(value)) return undefined
  const entries = Object.entries(value)
  const [first] = entries
  return entries.length === 1 && first && FORMS.has(first[0]) ? first : undefined
}

/** Yields every reference, expression and secret in a value with its place. Throws ValueError on an invalid form. */
export const formsOf = (value: unknown, at = ''): Found => {
  const found: Found = { references: [], expressions: [], secrets: [], loops: [] }
  visit(value, at, found)
  return found
}
type Located = { text: string; at: string }
/** `loops`: the places of "$each". */
type Found = { references: Reference[]; expressions: Located[]; secrets: Located[]; loops: string[] }

const visit = (value: unknown, at: string, found: Found): void => {
  if (Array.isArray(value)) for (const [i, item] of value.entries()) visit(item, at + pointerOf(i), found)
  if (!isObject(value)) return
  const form = formOf(value)
  if (!form) {
    const odd = Object.keys(value).find((key) => FORMS.has(key))
    if (odd) throw new ValueError('malformed', at, `"${odd}" must be the only member of its object.`)
    for (const [key, item] of Object.entries(value)) visit(item, at + pointerOf(key), found)
    return
  }
  const [name, body] = form
  if (name === '$from') found.references.push(parseReference(body, at + pointerOf(name)))
  else if (name === '$join') for (const part of partsOf(body, at)) visit(part, at + pointerOf(name), found)
  else if (name === '$each') {
    const { references, secrets } = eachOf(body, at)
    found.references.push(...references)
    found.secrets.push(...secrets)
    found.loops.push(at)
  } else if (name !== '$$') {
    if (typeof body !== 'string') throw new ValueError('malformed', at, `"${name}" needs a string.`)
    found[name === '$cel' ? 'expressions' : 'secrets'].push({ text: body, at: at + pointerOf(name) })
  }
}

const partsOf = (body: unknown, at: string): unknown[] => {
  if (!Array.isArray(body)) throw new ValueError('malformed', at, '"$join" needs a list of strings and references.')
  for (const part of body)
    if (typeof part !== 'string' && formOf(part)?.[0] !== '$from')
      throw new ValueError('malformed', at, 'A part of "$join" is a string or a {"$from": …}.')
  return body
}

const EACH = '"$each" needs "key" and either "value" or "by"; "key" and "by" are such as "target/name".'
/** Reads the parts of a `$each` and their references. Expressions and loops in it would be evaluated per target. */
const eachOf = (body: unknown, at: string) => {
  const place = at + pointerOf('$each')
  const { key, by, value, ...others } = isObject(body) ? body : {}
  const name = ofTarget(key, `${place}/key`)
  const group = ofTarget(by, `${place}/by`)
  const one = by === undefined ? value !== undefined : group !== undefined && value === undefined
  if (!name || !one || Object.keys(others).length > 0) throw new ValueError('malformed', place, EACH)
  const inside = formsOf(value, `${place}/value`)
  const [first] = [...inside.expressions.map((found) => found.at), ...inside.loops]
  if (first !== undefined) throw new ValueError('malformed', first, '"$each" cannot contain "$cel" or "$each".')
  const references = [name, ...(group ? [group] : []), ...inside.references]
  return { name, group, value, references: references.map(perTarget), secrets: inside.secrets }
}
const ofTarget = (text: unknown, at: string): Reference | undefined =>
  typeof text === 'string' && text.startsWith('target/') ? parseReference(text, at) : undefined
const perTarget = (reference: Reference): Reference => ({ ...reference, each: true })

/** One plan has one count, because all its forms together have to fit into memory. */
export type MemberCount = { members: number }
const MAX_MEMBERS = 50_000

export type PlanScope = {
  /** The targets of the plan, for "$each". */
  targets?: readonly Record<string, unknown>[]
  /** The members that "$each" has made in the whole plan. If it is missing, each form is counted alone. */
  count?: MemberCount
  /** The documents of PLAN_ROOTS; a missing root cannot be referred to. */
  roots: Record<string, unknown>
  /** The node that a step's name refers to; undefined if there is no such step here. */
  nodeOf: (step: string) => string | undefined
}

/**
 * Fills in everything known when the plan is made; references to outputs stay, with the full ids of their nodes. A
 * member whose expression gives an absent optional is left out.
 */
export const expandValue = (value: unknown, scope: PlanScope, at = ''): unknown => expanded(value, scope, at) ?? null

const expanded = (value: unknown, scope: PlanScope, at: string): unknown => {
  if (Array.isArray(value)) return value.map((item, i) => expandValue(item, scope, at + pointerOf(i)))
  const form = formOf(value)
  if (form) return expandForm(form[0], form[1], scope, at)
  if (!isObject(value)) return value
  const members = mapMembers(value, (item, key) => expanded(item, scope, at + pointerOf(key)))
  return Object.fromEntries(Object.entries(members).filter(([, item]) => item !== undefined))
}

const expandForm = (name: string, body: unknown, scope: PlanScope, at: string): unknown => {
  if (name === '$from') return expandReference(parseReference(body, at + pointerOf(name)), scope)
  if (name === '$join')
    return joined(
      partsOf(body, at).map((part) => expandValue(part, scope, at)),
      at,
    )
  if (name === '$cel') return quoted(evaluated(String(body), scope.roots, at))
  if (name === '$each') return expandEach(body, scope, at)
  if (name === '$$') return quoted(body)
  return { [name]: body }
}

const TOO_MANY = `"$each" makes more than ${MAX_MEMBERS} members in this plan. Select fewer targets, or use it in a procedure with "scope: plan".`

/** An object made of the plan's targets: a value of each by its key, or lists of keys by a value that targets share. */
const expandEach = (
  body: unknown,
  { targets = [], count = { members: 0 }, ...scope }: PlanScope,
  at: string,
): Record<string, unknown> => {
  const { name, group, value } = eachOf(body, at)
  if (targets.length === 0) throw new ValueError('unknown_reference', at, 'The plan has no targets for "$each".')
  count.members += targets.length
  if (count.members > MAX_MEMBERS) throw new ValueError('malformed', at, TOO_MANY)
  const made = new Map<string, unknown>()
  const groups = new Map<string, string[]>()
  for (const target of targets) {
    const key = textOf(target, name)
    if (made.has(key)) throw new ValueError('malformed', name.at, `More than one target has the key "${key}".`)
    made.set(key, group ? undefined : expandOf(value, target, scope, at))
    if (!group || readPointer(target, group.pointer) === undefined) continue
    const shared = textOf(target, group)
    const members = groups.get(shared)
    if (members) members.push(key)
    else groups.set(shared, [key])
  }
  return Object.fromEntries(group ? groups : made)
}

const textOf = (target: Record<string, unknown>, { pointer, text, at }: Reference): string => {
  const found = readPointer(target, pointer)
  if (typeof found === 'string' && !FORMS.has(found)) return found
  throw new ValueError('malformed', at, `"${text}" of the target "${target.name}" is not a string that can be a key.`)
}

/** Fills in the values of one target; a fault names it. */
const expandOf = (value: unknown, target: Record<string, unknown>, scope: PlanScope, at: string): unknown => {
  try {
    return expandValue(value, { ...scope, roots: { ...scope.roots, target } }, `${at}/$each/value`)
  } catch (error) {
    if (!(error instanceof ValueError)) throw error
    throw new ValueError(error.code, error.pointer, `${error.message} The target is "${target.name}".`)
  }
}

const expandReference = (reference: Reference, scope: PlanScope): unknown => {
  if (reference.root === 'nodes') {
    const [step = '', ...rest] = reference.pointer.slice(1).split('/')
    const node = scope.nodeOf(step)
    if (!node) throw missing(reference)
    return { $from: `nodes/${node}/${rest.join('/')}` }
  }
  const found = Object.hasOwn(scope.roots, reference.root)
    ? readPointer(scope.roots[reference.root], reference.pointer)
    : undefined
  if (found === undefined) throw missing(reference)
  return quoted(found)
}

/** Resolves forms that a plan left open. Without `secrets`, `$secret` stays, so that inputs can be shown and stored. */
export const resolveValue = (value: unknown, context: DispatchContext, at = ''): unknown => {
  if (Array.isArray(value)) return value.map((item, i) => resolveValue(item, context, at + pointerOf(i)))
  const form = formOf(value)
  if (!form) {
    if (!isObject(value)) return value
    return mapMembers(value, (item, key) => resolveValue(item, context, at + pointerOf(key)))
  }
  const [name, body] = form
  if (name === '$$') return body
  if (name === '$join')
    return joined(
      partsOf(body, at).map((part) => resolveValue(part, context, at)),
      at,
    )
  if (name === '$secret') return secretOf(String(body), context, at)
  if (name === '$cel' || name === '$each')
    throw new ValueError('malformed', at, `"${name}" is evaluated when a plan is made, not at dispatch.`)
  return outputOf(parseReference(body, at), context)
}
export type DispatchContext = {
  nodes: Record<string, { outputs: unknown } | undefined>
  secrets?: Record<string, string>
}

const secretOf = (name: string, { secrets }: DispatchContext, at: string): unknown => {
  if (!secrets) return { $secret: name }
  const secret = Object.hasOwn(secrets, name) ? secrets[name] : undefined
  if (secret === undefined) throw new ValueError('unknown_reference', at, `There is no secret "${name}".`)
  return secret
}

const outputOf = (reference: Reference, { nodes }: DispatchContext): unknown => {
  const [node = '', ...rest] = reference.pointer.slice(1).split('/')
  const found =
    reference.root === 'nodes' && Object.hasOwn(nodes, node)
      ? readPointer(nodes[node], rest.length === 0 ? '' : `/${rest.join('/')}`)
      : undefined
  if (found === undefined) throw missing(reference)
  return found
}

const joined = (parts: unknown[], at: string): unknown => {
  const texts: unknown[] = []
  for (const part of parts) {
    if (formOf(part)?.[0] === '$from') texts.push(part)
    else if (isObject(part) || Array.isArray(part) || part === null)
      throw new ValueError('expression_error', at, 'Only strings, numbers and booleans can be joined.')
    else if (typeof texts.at(-1) === 'string') texts.push(`${texts.pop()}${part}`)
    else texts.push(String(part))
  }
  if (texts.every((text) => typeof text === 'string')) return texts.join('')
  return { $join: texts }
}

const evaluated = (source: string, roots: Record<string, unknown>, at: string): unknown => {
  try {
    return compileCel(source, PLAN_ROOTS).evaluate(roots)
  } catch (error) {
    if (error instanceof CelError) throw new ValueError('expression_error', at, error.message)
    throw error
  }
}

/** Wraps data that happens to look like a form, so that dispatch takes it literally. */
const quoted = (data: unknown): unknown => {
  if (Array.isArray(data)) return data.map(quoted)
  if (!isObject(data)) return data
  if (Object.keys(data).some((key) => FORMS.has(key))) return { $$: data }
  return mapMembers(data, quoted)
}

/**
 * Returns the merge patch that reverts an expanded one: each member that it sets gets its earlier value, or is removed.
 * `undefined` for a patch that is itself an output, because its members are unknown before dispatch.
 */
export const inverseOf = (patch: unknown, before: unknown): Record<string, unknown> | undefined => {
  const inverse = inverseIn(patch, before, formOf)
  return inverse && (quoted(inverse) as Record<string, unknown>)
}

const inverseIn = (patch: unknown, before: unknown, form: typeof formOf): Record<string, unknown> | undefined => {
  const [name, body] = form(patch) ?? []
  // Data that looks like a form is still data.
  if (name === '$$') return inverseIn(body, before, () => undefined)
  if (name !== undefined || !isObject(patch)) return undefined
  const inverse = new Map<string, unknown>()
  for (const [key, value] of Object.entries(patch)) {
    const old = isObject(before) && Object.hasOwn(before, key) ? before[key] : undefined
    const within = isObject(old) ? inverseIn(value, old, form) : undefined
    if (within) {
      if (Object.keys(within).length > 0) inverse.set(key, within)
    } else if (old === undefined) {
      if (value !== null) inverse.set(key, null)
    } else if (!equalJson(old, value)) inverse.set(key, old)
  }
  return Object.fromEntries(inverse)
}

const mapMembers = (members: Record<string, unknown>, map: (item: unknown, key: string) => unknown) =>
  Object.fromEntries(Object.entries(members).map(([key, item]) => [key, map(item, key)]))

const missing = (reference: Reference) =>
  new ValueError('unknown_reference', reference.at, `"${reference.text}" refers to an unknown value.`)
