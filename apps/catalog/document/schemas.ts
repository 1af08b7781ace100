import type { ErrorObject, SchemaObject, ValidateFunction } from 'ajv'
import { createAjv } from '../../shared/data/json-schema.ts'
import type { Violation } from '../../shared/errors.ts'
import { isObject, type JsonObject, parsePointer } from './pointers.ts'

// One instance compiles all of them: schemas may not have names (foreignRefs), so they cannot collide.
const ajv = createAjv({})

const byObject = new WeakMap<object, ValidateFunction>()
const byText = new Map<string, ValidateFunction>()

/** The validator of a pack's schema (2020-12, strict), compiled once per text. Throws Ajv's message if invalid. */
export const validatorOf = (schema: object): ValidateFunction => {
  const known = byObject.get(schema)
  if (known) return known
  const text = JSON.stringify(schema)
  const validate = byText.get(text) ?? ajv.compile(schema as SchemaObject)
  byText.set(text, validate)
  byObject.set(schema, validate)
  return validate
}

/** The violations of a value, with pointers under `at`. Messages come from the schema and never repeat the value. */
export const violationsOf = (schema: object, value: unknown, at: string): Violation[] => {
  const validate = validatorOf(schema)
  return validate(value) ? [] : (validate.errors ?? []).map((error) => violationOf(error, at))
}

const violationOf = ({ keyword, instancePath, params, message }: ErrorObject, at: string): Violation => {
  const member = (params.additionalProperty ?? params.missingProperty) as string | undefined
  return {
    pointer: `${at}${instancePath}${member === undefined ? '' : `/${member}`}`,
    code: keyword === 'additionalProperties' ? 'unknown_field' : keyword,
    message: keyword === 'additionalProperties' ? 'is not a field of this type' : (message ?? 'is not valid'),
  }
}

/** Whether a schema defines the place of a pointer: its sub-schema, `open` if anything is allowed, or `undefined`. */
export const schemaAt = (root: JsonObject, pointer: string): JsonObject | 'open' | undefined => {
  let schema: JsonObject | 'open' | undefined = resolve(root, root)
  for (const token of parsePointer(pointer) ?? []) {
    if (schema === 'open' || schema === undefined) return schema
    const properties: unknown = schema.properties
    const next: unknown = isObject(properties) && Object.hasOwn(properties, token) ? properties[token] : undefined
    if (isObject(next)) schema = resolve(root, next)
    else schema = schema.additionalProperties === true || isObject(schema.additionalProperties) ? 'open' : undefined
  }
  return schema
}

const resolve = (root: JsonObject, schema: JsonObject, depth = 0): JsonObject => {
  if (typeof schema.$ref !== 'string' || depth > 20) return schema
  let target: unknown = root
  for (const token of parsePointer(schema.$ref.slice(1)) ?? []) target = isObject(target) ? target[token] : undefined
  return isObject(target) ? resolve(root, target, depth + 1) : schema
}

/** Every reference that leaves a schema, and every name by which another schema could reach it. */
export const foreignRefs = (schema: unknown): string[] => {
  if (Array.isArray(schema)) return schema.flatMap(foreignRefs)
  if (!isObject(schema)) return []
  const own = ['$ref', '$dynamicRef']
    .map((name) => schema[name])
    .filter((ref): ref is string => typeof ref === 'string' && !ref.startsWith('#'))
  const names = ['$id', '$anchor', '$dynamicAnchor'].filter((name) => typeof schema[name] === 'string')
  return [...own, ...names, ...Object.values(schema).flatMap(foreignRefs)]
}
