import type { Ajv } from 'ajv'
import formats from 'ajv-formats'
import { isUuid } from '../ids.ts'

const plugin = formats as unknown as typeof formats.default
const dateTime = plugin.get('date-time') as { validate: (text: string) => boolean }

/**
 * The formats of input. They are narrower than the general ones if one of our parts could not read the value or would
 * read it differently. An id has one spelling, lower case, because digests cover it. A time must be one that both this
 * process and Postgres accept: no year 0, no leap second, an offset below 16 hours.
 */
export const addFormats = (ajv: Ajv): void => {
  plugin(ajv)
  ajv.addFormat('uuid', isUuid)
  ajv.addFormat('date-time', isTime)
}

const OFFSET = /[+-](\d\d):?(?:\d\d)?$/

export const isTime = (text: string): boolean =>
  dateTime.validate(text) &&
  !text.startsWith('0000') &&
  !Number.isNaN(Date.parse(text)) &&
  Number(OFFSET.exec(text)?.[1] ?? 0) < 16
