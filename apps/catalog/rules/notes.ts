import { Ajv2020 } from 'ajv/dist/2020.js'
import { ResourceCreate } from '../../shared/contracts/catalog/resources.ts'
import { violationOf } from '../../shared/data/json-schema.ts'
import { violated } from './change.ts'

/** The members of a resource that do not depend on its type and that every writer may set. */
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

/** The body with names in NFC: a letter with an accent is one name, whether written as one character or two. */
export const composed = <T extends { [Name in (typeof SPELLED)[number]]?: unknown }>(body: T): T => {
  const spelled = { ...body }
  for (const name of SPELLED) if (typeof body[name] === 'string') spelled[name] = body[name].normalize('NFC') as never
  return spelled
}

/** Checks a resource's new notes, and the name of a new resource: 422 with a pointer to the first violation. */
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
