import { equalJson } from '../../shared/data/pointer.ts'
import { AppError, wrongAt } from '../../shared/errors.ts'
import { isObject, type Json, type JsonObject, parsePointer } from './pointers.ts'

/** Only `copy` and `move` read `from`: members that an operation does not define are ignored. */
export type PatchOperation = { op: string; path: string; from?: unknown; value?: Json }

const refuse = (index: number, message: string) =>
  wrongAt(`/${index}`, message, {
    status: 422,
    detail: `Operation ${index} of the patch: ${message}`,
    as: 'json_patch',
  })

/** A patch that copies its own copies doubles the document each time, so the size of all copies stays below this. */
const MAX_COPIED = 1_048_576

/** RFC 6902 on one copy, changed in place: all or none. A failing `test`: 409 `test_failed`; an unfit operation: 422 with its number. */
export const jsonPatch = (document: Json, operations: readonly PatchOperation[]): Json => {
  let root: Json = structuredClone(document)
  let copied = 0
  operations.forEach((operation, index) => {
    const path = pointerOf(operation.path, index)
    const { op } = operation
    if (op === 'test') {
      if (operation.value === undefined) throw refuse(index, '"test" needs a value.')
      const found = find(root, path)
      if (found === undefined || !equalJson(found, operation.value)) throw testFailed(index, operation.path)
    } else if (op === 'add' || op === 'replace') {
      if (operation.value === undefined) throw refuse(index, `"${op}" needs a value.`)
      if (op === 'replace') get(root, path, index)
      root = put(root, path, structuredClone(operation.value), index, op === 'add')
    } else if (op === 'remove') {
      get(root, path, index)
      drop(root, path, index)
    } else if (op === 'copy' || op === 'move') {
      const from = pointerOf(operation.from, index)
      if (op === 'move' && path.length > from.length && from.every((token, at) => token === path[at])) {
        throw refuse(index, 'a value cannot move into itself.')
      }
      const found = get(root, from, index)
      if (op === 'copy') copied += JSON.stringify(found).length
      if (copied > MAX_COPIED) throw refuse(index, `the patch copies more than ${MAX_COPIED} characters.`)
      if (op === 'move') drop(root, from, index)
      root = put(root, path, op === 'move' ? found : structuredClone(found), index, true)
    } else throw refuse(index, `"${String(op)}" is not an operation.`)
  })
  return root
}

const testFailed = (index: number, path: string) =>
  new AppError('version_conflict', 'test_failed', `The test in operation ${index} of the patch failed.`, {
    extra: { index, path },
    hint: 'Read the resource again and recreate the patch.',
  })

const pointerOf = (text: unknown, index: number): string[] => {
  const path = typeof text === 'string' ? parsePointer(text) : undefined
  if (!path) throw refuse(index, 'needs a JSON pointer.')
  // No body can contain this name (apps/shared/http/json-body.ts), so no patch may create one either.
  if (path.includes('__proto__')) throw refuse(index, 'a member cannot be called __proto__.')
  return path
}

const isIndex = (token: string): boolean => /^(0|[1-9]\d{0,6})$/.test(token)

const arrayIndex = (list: readonly Json[], token: string, index: number, append: boolean): number => {
  if (append && token === '-') return list.length
  const at = isIndex(token) ? Number(token) : -1
  if (at < 0 || at > list.length - (append ? 0 : 1)) throw refuse(index, `the array has no index "${token}".`)
  return at
}

const find = (root: Json, path: readonly string[]): Json | undefined => {
  let value: Json | undefined = root
  for (const token of path) {
    if (Array.isArray(value)) value = isIndex(token) ? value[Number(token)] : undefined
    else value = isObject(value) && Object.hasOwn(value, token) ? value[token] : undefined
  }
  return value
}

const get = (root: Json, path: readonly string[], index: number): Json => {
  const value = find(root, path)
  if (value === undefined) throw refuse(index, `there is no value at "/${path.join('/')}".`)
  return value
}

/** The list or object that holds a place, and the last token of its path. */
const holderOf = (root: Json, path: readonly string[], index: number): [Json[] | JsonObject, string] => {
  const token = path.at(-1)
  if (token === undefined) throw refuse(index, 'the whole document cannot be removed.')
  const holder = get(root, path.slice(0, -1), index)
  if (Array.isArray(holder) || isObject(holder)) return [holder, token]
  throw refuse(index, `"${token}" does not exist, because its parent is not an object or array.`)
}

const put = (root: Json, path: readonly string[], value: Json, index: number, insert: boolean): Json => {
  if (path.length === 0) return value
  const [at, token] = holderOf(root, path, index)
  if (Array.isArray(at)) at.splice(arrayIndex(at, token, index, insert), insert ? 0 : 1, value)
  // An assignment could reach a setter of the prototype.
  else Object.defineProperty(at, token, { value, writable: true, enumerable: true, configurable: true })
  return root
}

const drop = (root: Json, path: readonly string[], index: number): void => {
  const [at, token] = holderOf(root, path, index)
  if (Array.isArray(at)) at.splice(arrayIndex(at, token, index, false), 1)
  else delete at[token]
}
