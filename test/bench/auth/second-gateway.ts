import { Pool } from 'undici'
import { createPorts } from '../../../apps/platform/base/ports.ts'
import { APPS } from '../../../apps/platform/run/apps.ts'
import { appProcess } from '../../../apps/platform/run/supervisor.ts'
import type { Bench } from './clients.ts'

/** One more gateway of the same platform, as a separate process; `overrides` replace variables of its environment. */
export const startGateway = async ({ stack }: Bench, name: string, overrides: Record<string, string> = {}) => {
  const app = APPS.find((each) => each.name === 'gateway')
  if (!app) throw new Error('there is no gateway in the table of apps')
  const ports = createPorts()
  const http = await ports.take(name, 0)
  const { context } = stack
  const own = { http, internal: await ports.take(`${name} (internal)`, 0) }
  const process = appProcess(app, {
    ...context,
    ports: { ...context.ports, gateway: own },
    overrides: { ...context.overrides, ...overrides },
  })
  await process.start()
  const pool = new Pool(`http://127.0.0.1:${http}`, { connections: 32, pipelining: 1 })
  return {
    pool,
    stop: async () => {
      await pool.close()
      await process.stop()
    },
  }
}
