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
})
