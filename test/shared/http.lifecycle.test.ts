import { once } from 'node:events'
import http from 'node:http'
import net from 'node:net'
import { describe, expect, it } from 'vitest'
import { createHttpApp, listen } from '../../apps/shared/http/app.ts'
import { AUTH_CODES } from '../../apps/shared/http/edge-codes.ts'
import { createReadiness } from '../../apps/shared/http/health.ts'
import { createTelemetry } from '../../apps/shared/telemetry.ts'
import { until } from '../support/until.ts'

describe('the time of a request', () => {
  it("is what the caller will wait, at most the app's limit; then the answer is 503, and later output changes nothing", async () => {
    const app = createHttpApp({
      telemetry: createTelemetry('test', { level: 'silent' }),
      codes: AUTH_CODES,
      deadline_ms: 40,
    })
    const go = Promise.withResolvers<void>()
    app.get('/slow', async () => {
      await go.promise
      return { done: true }
    })
    const ask = (headers: Record<string, string>) => {
      const begun = performance.now()
      return app.inject({ url: '/slow', headers }).then((answer) => ({ answer, ms: performance.now() - begun }))
    }
    for (const headers of [
      {},
      { 'x-request-deadline': '15' },
      { 'x-request-deadline': '60000' },
      { 'x-request-deadline': 'x' },
    ]) {
      const { answer, ms } = await ask(headers)
      expect([answer.statusCode, answer.json().code, answer.json().retryable]).toEqual([503, 'dependency_down', true])
      expect(ms).toBeGreaterThanOrEqual(headers['x-request-deadline'] === '15' ? 14 : 39)
    }
    expect((await ask({ 'x-request-deadline': '1' })).ms).toBeLessThan(39)
    go.resolve()
    expect((await ask({})).answer.json()).toEqual({ done: true })
    await app.close()
  })

  it('does not apply to a stream; every idle connection is eventually cut', () => {
    const app = createHttpApp({ telemetry: createTelemetry('test', { level: 'silent' }), codes: AUTH_CODES })
    expect(app.server.timeout).toBe(60_000)
  })
})

describe('readiness', () => {
  it('is red after 5 s of failure, green after one success, and red from the start until the first', async () => {
    let now = 0
    let away = true
    const read = createReadiness(
      {
        store: { critical: true, run: async () => (away ? Promise.reject(new Error('away')) : undefined) },
        other: { critical: false, run: async () => (away ? Promise.reject(new Error('away')) : undefined) },
      },
      () => now,
    )
    const status = async () => (await read()).status
    expect(await status()).toBe('unready')
    away = false
    expect(await status()).toBe('ready')
    away = true
    expect(await status()).toBe('degraded')
    now += 4999
    expect(await status()).toBe('degraded')
    now += 1
    expect(await read()).toMatchObject({ status: 'unready', checks: { store: { ok: false, detail: 'away' } } })
    away = false
    expect(await status()).toBe('ready')
    away = true
    now += 60_000
    expect(await status()).toBe('degraded')
  })
})

describe('stopping in order', () => {
  it('answers requests in flight, and a kept-alive connection does not delay it', async () => {
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

  it('does not wait for a connection without a request', async () => {
    const app = createHttpApp({ telemetry: createTelemetry('test', { level: 'silent' }), codes: AUTH_CODES })
    const url = await listen(app, '127.0.0.1', 0)
    const connected = once(app.server, 'connection')
    const socket = net.connect(Number(new URL(url).port), '127.0.0.1')
    await connected
    await app.close()
    socket.destroy()
  }, 5000)
})
