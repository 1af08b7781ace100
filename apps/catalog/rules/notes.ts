import { Ajv2020 } from 'ajv/dist/2020.js'
import { ResourceCreate } from '../../shared/contracts/catalog/resources.ts'
import { violationOf } from '../../shared/data/json-schema.ts'
import { violated } from './change.ts'

/** The members of a resource that are free of its type and that every writer may set. */
export const NOTES = ['display_name', 'owner', 'labels', 'annotations'] as const
export type Notes = {
  display_name: string
  owner: string | null
  labels: Record<string, string>
  annotations: Record<string, string>
}

const MAX_ANNOTATIONS_BYTES = 32_768
const { display_name, owner, labels, annotations } = ResourceCreate.properties
const fits = new Ajv2020({ allErrors: true, strict: false }).compile({
  type: 'object',
  properties: { display_name, owner: { anyOf: [owner, { type: 'null' }] }, labels, annotations },
} as object)

/** Checks the notes of a resource as they shall be: 422 with a pointer to what does not fit. */
export const checkNotes = (notes: Partial<Notes>): void => {
  if (!fits(notes)) {
    throw violated((fits.errors ?? []).map((error) => ({ ...violationOf(error), code: 'schema_violation' })))
  }
  const bytes = Object.entries(notes.annotations ?? {}).reduce(
    (sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value),
    0,
  )
  if (bytes > MAX_ANNOTATIONS_BYTES) {
    throw violated([{ pointer: '/annotations', code: 'schema_violation', message: 'are larger than 32 KiB' }])
  }
}
