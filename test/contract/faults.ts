import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'

const ajv = new Ajv2020({ strict: false, allErrors: true })
;(formats as unknown as (ajv: Ajv2020) => void)(ajv)
const compiled = new Map<object, ValidateFunction>()

/** Returns how a value differs from its schema in a document. */
export const faultsOf = (schema: object, value: unknown): string[] => {
  const validate = compiled.get(schema) ?? ajv.compile(schema)
  compiled.set(schema, validate)
  return validate(value) ? [] : (validate.errors ?? []).map((error) => `${error.instancePath} ${error.message}`)
}

/** Returns a schema that refuses members without a description, even if those of later releases are allowed. */
export const closed = (schema: object): object =>
  JSON.parse(JSON.stringify(schema), (_name, value) =>
    value?.type === 'object' && value.properties ? { additionalProperties: false, ...value } : value,
  )
