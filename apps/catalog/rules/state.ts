import { isStorable } from '../../shared/data/json.ts'
import type { Violation } from '../../shared/errors.ts'
import { escapeToken, isObject, type JsonObject, valueAt } from '../document/pointers.ts'

const MAX_BYTES = 262_144
const MAX_NESTING = 20
const SECRET_REFERENCE = /^secret:\/\/[a-z][a-z0-9_-]{0,62}\/[A-Za-z0-9._/-]{1,256}#[A-Za-z0-9._-]{1,64}$/

/**
 * What a state document must not contain, whatever its type (catalog.md 1). Refused are null (a merge patch cannot
 * distinguish it from absent), integers beyond 2^53, text that Postgres cannot store, and excessive depth or size.
 * Pointers start at `at`.
 */
export const stateViolations = (state: JsonObject, at: string): Violation[] => {
  const violations: Violation[] = []
  const walk = (value: unknown, pointer: string, depth: number) => {
    if (violations.length >= 100) return
    const refuse = (code: string, message: string) => violations.push({ pointer, code, message })
    if (value === null) refuse('null_in_state', 'is null: leave the field out instead')
    else if (typeof value === 'string' && !isStorable(value))
      refuse('invalid_text', 'holds characters that cannot be stored')
    else if (typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value))
      refuse('unsafe_integer', 'is an integer beyond 2^53: send it as a string')
    else if (depth > MAX_NESTING) refuse('too_deep', `is nested deeper than ${MAX_NESTING}`)
    else if (Array.isArray(value)) value.forEach((item, index) => void walk(item, `${pointer}/${index}`, depth + 1))
    else if (isObject(value)) {
      for (const [key, member] of Object.entries(value)) {
        if (!isStorable(key)) refuse('invalid_text', 'has a field whose name cannot be stored')
        else walk(member, `${pointer}/${escapeToken(key)}`, depth + 1)
      }
    }
  }
  walk(state, at, 0)
  if (violations.length === 0 && Buffer.byteLength(JSON.stringify(state)) > MAX_BYTES) {
    violations.push({ pointer: at, code: 'schema_violation', message: 'is larger than 256 KiB' })
  }
  return violations
}

/** Sensitive fields that contain anything but a secret reference. The violation never repeats the value. */
export const secretViolations = (sensitive: readonly string[], state: JsonObject, at: string): Violation[] =>
  sensitive
    .filter((pointer) => {
      const value = valueAt(state, pointer)
      return value !== undefined && !(typeof value === 'string' && SECRET_REFERENCE.test(value))
    })
    .map((pointer) => ({
      pointer: `${at}${pointer}`,
      code: 'secret_reference_required',
      message: 'takes a reference such as secret://provider/name#version, never the secret itself',
    }))
