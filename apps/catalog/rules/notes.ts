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
const { name, display_name, owner, labels, annotations } = ResourceCreate.properties
const fits = new Ajv2020({ allErrors: true, strict: false }).compile({
  type: 'object',
  properties: { name, display_name, owner: { anyOf: [owner, { type: 'null' }] }, labels, annotations },
} as object)

const SPELLED = ['name', 'display_name', 'owner'] as const

/** With names in NFC: a letter and its accent, written as one or as two, are the same name. */
export const composed = <T extends { [Name in (typeof SPELLED)[number]]?: unknown }>(body: T): T => {
  const spelled = { ...body }
  for (const name of SPELLED) if (typeof body[name] === 'string') spelled[name] = body[name].normalize('NFC') as never
  return spelled
}

/** Checks the notes of a resource, and the name of a new one, as they shall be: 422 with a pointer to what does not fit. */
export const checkNotes = (notes: Partial<Notes & { name: string }>): void => {
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
