import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startReports } from '../../apps/fleet/reports.ts'
import { type Host, openStore } from '../../apps/fleet/store.ts'
import { createTelemetry } from '../../apps/shared/telemetry.ts'
import { until } from '../support/until.ts'

/** The catalog's answers by resource; every other one is 200. */
const answers = new Map<string, number>()
const asked: string[] = []
const catalog = createServer((req, res) => {
  const id = req.url?.split('/')[4] ?? ''
  asked.push(id)
  res.writeHead(answers.get(id) ?? 200).end()
})
const store = openStore(':memory:')
beforeAll(async () => {
  await new Promise<void>((resolve) => catalog.listen(0, '127.0.0.1', resolve))
  for (const [n, hostname] of ['a-ended', 'b-well'].entries()) {
    const host = { hostname, port: 9000 + n, resource_id: hostname, region: null, release: '1.0.0', traffic: 'in' }
    store.saveHost({ ...host, drained_at: 0, deployed: 0, serial: 1, faults: {} } as Host)
  }
})
afterAll(() => {
  catalog.close()
  store.close()
})

it('reports every host, although the catalog refuses one that has ended', async () => {
  answers.set('a-ended', 422)
  const { port } = catalog.address() as AddressInfo
  const { log } = createTelemetry('fleet')
  const catalog_url = `http://127.0.0.1:${port}`
  const reports = startReports({ store, catalog_url, token: async () => 'token', every_s: 3, log })
  const count = (host: string) => asked.filter((id) => id === host).length
  try {
    await until(() => count('b-well') > 1, { what: 'two rounds' })
  } finally {
    await reports.stop()
  }
  // The refused one is told again with all, not every second.
  expect(count('a-ended') - count('b-well')).toBeLessThan(2)
})
