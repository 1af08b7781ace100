import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { ROUTES } from '../../apps/gateway/routes/table.ts'
import { type Document, operationsOf } from '../../apps/shared/http/openapi.ts'

const file = new URL('../../apps/shared/contracts/openapi/public.json', import.meta.url)
const document = JSON.parse(readFileSync(file, 'utf8')) as Document

describe('the route table and the document of the public API', () => {
  it('agree one to one on paths, kinds and permissions', () => {
    const rows = ROUTES.map(({ method, path, kind, permission }) => `${method} ${path} ${kind} ${[permission].flat()}`)
    const described = operationsOf(document).map(
      ({ method, path, operation }) =>
        `${method.toUpperCase()} ${path} ${operation['x-action-kind']} ${operation['x-permissions']}`,
    )
    expect(described.sort()).toEqual(rows.sort())
  })

  it('have exports that are in memory as a whole among the large requests', () => {
    const large = ROUTES.filter(({ method, priority }) => method === 'GET' && priority === 'batch')
    expect(large.map(({ path }) => path)).toEqual(['/api/v1/operations/{operation_id}/evidence'])
  })

  it("describes the gateway's own answers on every operation", () => {
    for (const { operation, path, method } of operationsOf(document)) {
      const needed = ['400', '414', '431', '503']
      if ((operation.security ?? []).length > 0) needed.push('401', '403', '429', '502', '504')
      // The Origin rule, also where no one needs to be signed in.
      if (!path.startsWith('/health/')) needed.push('403')
      if (!/^(get|head)$/i.test(method)) needed.push('408')
      if (operation.requestBody) needed.push('413', '415')
      const own = path === '/api/v1/platform/health' ? ['502', '504'] : []
      const missing = needed.filter((status) => !own.includes(status) && !operation.responses[status])
      expect(missing, operation.operationId ?? path).toEqual([])
    }
  })

  it('has values for each member, which all generators know', () => {
    const nulls: string[] = []
    const walk = (value: unknown, at: string) => {
      if (typeof value !== 'object' || value === null) return
      if ((value as { type?: unknown }).type === 'null' && !/\/(any|one)Of\/\d+$/.test(at)) nulls.push(at)
      for (const [name, one] of Object.entries(value)) walk(one, `${at}/${name}`)
    }
    walk(document, '')
    expect(nulls).toEqual([])
  })

  it('says which parameters the edge lets through', () => {
    const parameters = operationsOf(document).flatMap(({ operation }) => operation.parameters ?? [])
    const fits = (name: string, place: string, text: string) =>
      parameters
        .filter((one) => one.in === place && one.name === name)
        .map(({ schema }) => {
          const { items, ...own } = schema as { items?: object; pattern?: string; enum?: string[] }
          const { pattern = '', enum: values }: typeof own = { ...own, ...items }
          return values ? values.includes(text) : new RegExp(pattern, 'u').test(text)
        })
    expect(new Set(fits('machine_id', 'path', 'a b'))).toEqual(new Set([false]))
    expect(new Set(fits('machine_id', 'path', '0195f0c2-7c1d'))).toEqual(new Set([true]))
    expect(fits('response_mode', 'query', '')).toEqual([false])
    expect(new Set(fits('include', 'query', 'health'))).toEqual(new Set([true]))
    for (const text of ['', 'pods']) expect(new Set(fits('include', 'query', text))).toEqual(new Set([false]))
    expect(new Set(fits('health_status', 'query', ''))).toEqual(new Set([false]))
  })
})
