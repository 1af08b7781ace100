import { wrongAt } from '../../shared/errors.ts'

/** Members of a resource that can be requested in part, and whether their names are known beforehand. */
const PARTS: Record<string, readonly string[] | 'any'> = {
  labels: 'any',
  annotations: 'any',
  desired_state: 'any',
  observed_state: 'any',
  scope: ['region_id', 'datacenter_id', 'layer_id', 'segment_id'],
  drift: ['status', 'paths'],
  last_operation: ['operation_id', 'command_id', 'at'],
}
/** Their keys may contain dots: the rest of the path is one key. */
const FLAT = new Set(['labels', 'annotations'])
const ALWAYS = ['resource_id', 'version', 'historical']
const MAX_FIELDS = 100

/** A selection of members: paths from the top. */
export type Fields = readonly (readonly string[])[]

const unknown = (path: string) =>
  wrongAt('/querystring/fields', `does not know ${path}`, {
    code: 'unknown_field',
    detail: `fields does not know ${path}.`,
    hint: 'Name fields of a resource, such as name,labels.environment,desired_state.release.',
  })

/** Reads `fields` (catalog.md 7.1), comma-separated paths into members; `undefined` if absent. Unknown names: 400. */
export const parseFields = (paths: readonly string[] | undefined, members: readonly string[]): Fields | undefined => {
  if (paths === undefined) return undefined
  if (paths.length > MAX_FIELDS) throw unknown(`more than ${MAX_FIELDS} paths`)
  return paths.map((path) => {
    const [name = '', ...rest] = path.split('.')
    if (!members.includes(name)) throw unknown(path)
    if (rest.length === 0) return [name]
    const inner = PARTS[name]
    if (!inner || rest.includes('') || (inner !== 'any' && !(rest.length === 1 && inner.includes(rest[0] as string))))
      throw unknown(path)
    return FLAT.has(name) ? [name, rest.join('.')] : [name, ...rest]
  })
}

/** The selected parts of a document, with its id and version; parts that it lacks are left out, and null stays null. */
export const pickFields = (document: object, fields: Fields): Record<string, unknown> => {
  const picked: Record<string, unknown> = {}
  for (const path of [...ALWAYS.map((name) => [name]), ...fields]) take(document, path, picked)
  return picked
}

const take = (from: unknown, [name, ...rest]: readonly string[], into: Record<string, unknown>): void => {
  if (name === undefined || typeof from !== 'object' || from === null || !Object.hasOwn(from, name)) return
  const value = (from as Record<string, unknown>)[name]
  const define = (part: unknown) =>
    Object.defineProperty(into, name, { value: part, enumerable: true, configurable: true, writable: true })
  if (rest.length === 0 || value === null) return void define(value)
  if (typeof value !== 'object') return
  const inner = Object.hasOwn(into, name) ? into[name] : {}
  // The whole member is selected as well.
  if (inner === value || typeof inner !== 'object' || inner === null) return
  take(value, rest, inner as Record<string, unknown>)
  if (!Object.hasOwn(into, name)) define(inner)
}
