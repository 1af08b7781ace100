import { expect, it } from 'vitest'
import { loadArrays } from '../../apps/catalog/graph/feed.ts'
import { testDatabase } from '../support/database.ts'

const never = new AbortController().signal

it('a load of the graph says why it failed', async () => {
  await expect(loadArrays('postgres://127.0.0.1:1/catalog', never)).rejects.toThrow('ECONNREFUSED')
})

it('a load of the graph ends when it is aborted, and otherwise has the whole graph', async () => {
  const { url, drop } = await testDatabase('catalog')
  try {
    await expect(loadArrays(url, AbortSignal.timeout(5))).rejects.toThrow('the loader of the graph ended')
    const { nodes, edges, out_no } = await loadArrays(url, never)
    expect({ nodes, edges, out_no }).toEqual({ nodes: 0, edges: 0, out_no: new Float64Array(0) })
  } finally {
    await drop()
  }
})
