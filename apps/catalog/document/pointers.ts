import { equalJson, tokensOf } from '../../shared/data/pointer.ts'

/** JSON pointers (RFC 6901) over plain JSON values. */
export type Json = null | boolean | number | string | Json[] | { [member: string]: Json }
export type JsonObject = { [member: string]: Json }

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const escapeToken = (token: string): string => token.replaceAll('~', '~0').replaceAll('/', '~1')

/** The reference tokens of a pointer; `undefined` if the text is not a pointer. */
export const parsePointer = (pointer: string): string[] | undefined => {
  if (pointer !== '' && (!pointer.startsWith('/') || /~(?![01])/.test(pointer))) return undefined
  return tokensOf(pointer)
}

/** The value at a pointer, or `undefined`. Only own members count. */
export const valueAt = (document: unknown, pointer: string): Json | undefined => {
  let value = document
  for (const token of parsePointer(pointer) ?? ['']) {
    if (Array.isArray(value)) value = /^(0|[1-9]\d*)$/.test(token) ? value[Number(token)] : undefined
    else if (isObject(value) && Object.hasOwn(value, token)) value = value[token]
    else return undefined
  }
  return value as Json | undefined
}

/** Pointers of everything that differs between two documents: members one by one, arrays and scalars as a whole. */
export const changedPaths = (before: unknown, after: unknown, at = ''): string[] => {
  if (!isObject(before) || !isObject(after)) return equalJson(before, after) ? [] : [at]
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort()
  return keys.flatMap((key) =>
    equalJson(before[key], after[key]) ? [] : changedPaths(before[key], after[key], `${at}/${escapeToken(key)}`),
  )
}

const MAX_PATHS = 500
const MAX_PATH_BYTES = 16_384

/** Pointers to the changes, as exact as a short list allows: if there are too many, their common parents. */
export const fewPaths = (paths: string[]): string[] => {
  let few = paths
  for (let depth = 8; depth > 0 && isLong(few); depth--)
    few = [...new Set(few.map((path) => path.split('/', depth + 1).join('/')))]
  return few
}

const isLong = (paths: readonly string[]): boolean =>
  paths.length > MAX_PATHS || paths.reduce((bytes, path) => bytes + Buffer.byteLength(path), 0) > MAX_PATH_BYTES
