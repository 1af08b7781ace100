import { basename } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openapiDocuments } from '../../apps/platform/check/openapi/files.ts'
import { isTime } from '../../apps/shared/data/formats.ts'

it.each([
  '2026-02-30T00:00:00Z',
  '2026-06-31T00:00:00Z',
  '2025-02-29T00:00:00Z',
  '0000-01-01T00:00:00Z',
  '2026-13-01T00:00:00Z',
  '2026-01-01T24:00:01Z',
  '2026-06-30T23:59:60Z',
  '2026-01-01T00:00:00+23:59',
  '2026-01-01T00:00Z',
  '2026-01-01',
  '',
])('%j is not a time', (text) => expect(isTime(text)).toBe(false))

it.each(['2024-02-29T00:00:00Z', '2026-01-01T00:00:00.123456789+05:30', '2026-12-31T23:59:59-12:00'])(
  '%j is a time',
  (text) => expect(isTime(text)).toBe(true),
)

type Parameter = { name: string; in: string; schema?: { type?: string; format?: string } }
type Document = { paths: Record<string, Record<string, { parameters?: Parameter[] }>> }
/** The names that time parameters have in this API. */
const TIMES = /^(at|from|to|not_before|.+_(at|since|before|until))$|^created_after$/

describe('every time parameter accepts only existing times', async () => {
  const documents = [...(await openapiDocuments())]
    .filter(([file]) => file.endsWith('.json'))
    .map(([file, text]) => [basename(file, '.json'), JSON.parse(text) as Document] as const)
  it.each(documents)('of %s', (_, { paths }) => {
    const parameters = Object.entries(paths).flatMap(([path, item]) =>
      Object.values(item).flatMap((operation) =>
        (operation.parameters ?? []).flatMap((one) => (one.in === 'query' ? [{ path, ...one }] : [])),
      ),
    )
    const loose = parameters.filter(({ name, schema }) => TIMES.test(name) && schema?.format !== 'date-time')
    expect(loose.map(({ path, name }) => `${path} ${name}`)).toEqual([])
  })
})
