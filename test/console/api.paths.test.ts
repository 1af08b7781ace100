import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

const documentOf = (app: string): { paths: Record<string, { get?: unknown }> } =>
  JSON.parse(readFileSync(new URL(`../../apps/shared/contracts/openapi/${app}.json`, import.meta.url), 'utf8'))

describe('the reads of the console', () => {
  it('are documented paths of the public APIs, each', () => {
    const source = readFileSync(new URL('../../apps/console/api/paths.ts', import.meta.url), 'utf8')
    const read = [...source.matchAll(/^ {2}'(\/v1\/[^']+)': Get</gm)].map(([, path]) => path as string)
    const documented = ['operations', 'catalog', 'session', 'identity', 'gateway'].flatMap((app) =>
      Object.entries(documentOf(app).paths).flatMap(([path, methods]) =>
        methods.get ? [path.replace(/^\/api/, '')] : [],
      ),
    )
    expect(read.length).toBeGreaterThan(10)
    expect(read.filter((path) => !documented.includes(path))).toEqual([])
  })
})
