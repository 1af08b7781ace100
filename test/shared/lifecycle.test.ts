import http from 'node:http'
import { describe, expect, it } from 'vitest'
import { AUTH_CODES, createHttpApp, listen } from '../../apps/shared/http.ts'
import { createTelemetry } from '../../apps/shared/telemetry.ts'
import { until } from '../support/until.ts'

describe('stopping in order', () => {
  it('answers what is under way, and a kept-alive connection does not hold it up', async () => {
    const app = createHttpApp({ telemetry: createTelemetry('test', { level: 'silent' }), codes: AUTH_CODES })
    const arrived = Promise.withResolvers<void>()
    const go = Promise.withResolvers<void>()
    app.get('/slow', async () => {
      arrived.resolve()
      await go.promise
      return { done: true }
    })
    await listen(app, '127.0.0.1', 0)
    const address = app.server.address()
    const port = typeof address === 'object' && address ? address.port : 0
    const agent = new http.Agent({ keepAlive: true })
    const answered = new Promise<number | undefined>((resolve, reject) => {
      const request = http.get({ port, path: '/slow', agent }, (reply) => {
        reply.resume().on('end', () => resolve(reply.statusCode))
      })
      request.on('error', reject)
    })
    await arrived.promise
    const closed = app.close().then(() => true)
    await until(() => !app.server.listening)
    go.resolve()
    expect(await answered).toBe(200)
    expect(await closed).toBe(true)
    agent.destroy()
  }, 5000)
})
