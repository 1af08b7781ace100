import { basename } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ROUTES } from '../../apps/gateway/routes/table.ts'
import { openapiDocuments } from '../../apps/platform/check/openapi-files.ts'

type Operation = { 'x-action-kind'?: string; 'x-permissions'?: string[] }
type Document = { paths: Record<string, Record<string, Operation>> }

/** The table's spelling of what an app serves: most paths have /api in front. */
const outside = (path: string) =>
  /^\/(auth\/|v1\/token|\.well-known\/|health\/|api\/)/.test(path) ? path : `/api${path}`

describe('the route table and the apps behind it', async () => {
  const documents = [...(await openapiDocuments())]
    .map(([file, text]) => [basename(file, '.json'), JSON.parse(text) as Document] as const)
    .filter(([name]) => !name.endsWith('-internal'))

  it.each(documents)('agree on kind and permission of every route of %s', (app, { paths }) => {
    const differences = Object.entries(paths).flatMap(([path, operations]) =>
      Object.entries(operations).flatMap(([method, operation]) => {
        if (method === 'servers') return []
        // The address that the specification gives to verifiers inside.
        if (app === 'token' && path === '/jwks') return []
        const name = `${method.toUpperCase()} ${outside(path)}`
        const row = ROUTES.find((one) => one.upstream === app && `${one.method} ${one.path}` === name)
        const table = row ? `${row.kind} ${[row.permission].flat().sort()}` : 'not in the table'
        const served = `${operation['x-action-kind']} ${[...(operation['x-permissions'] ?? [])].sort()}`
        return table === served ? [] : [`${name}: table ${table}, ${app} ${served}`]
      }),
    )
    expect(differences).toEqual([])
  })
})
