import { describe, expect, it } from 'vitest'
import { AppError, isFault, loginBusy, overloaded, unavailable } from '../../apps/shared/errors.ts'
import { type Bounds, createPressure, type Strain } from '../../apps/shared/http/pressure.ts'
import { PRIORITIES } from '../../apps/shared/process/priority.ts'
import { createTelemetry } from '../../apps/shared/telemetry.ts'

const BOUNDS: Bounds = { in_flight: 10, delay_ms: 250, utilisation: 0.95, rss_share: 0.8 }
const CALM: Strain = { delay_ms: 0, utilisation: 0, rss_share: 0 }

const start = () => {
  const telemetry = createTelemetry('test', { level: 'silent' })
  let strain = CALM
  const pressure = createPressure(telemetry, BOUNDS, () => strain)
  return {
    telemetry,
    pressure,
    sheds: (now: Partial<Strain> = {}) => {
      strain = { ...CALM, ...now }
      return PRIORITIES.filter(pressure.sheds).join(' ')
    },
  }
}

describe('under load', () => {
  const BUSY = 'write read batch'
  const OVER = 'enter decide write read batch'

  it('reads and writes are refused first, decisions and sign-ins at twice the bound, stops never', async () => {
    const { pressure, sheds, telemetry } = start()
    for (let i = 0; i < 10; i++) pressure.enter()
    expect(sheds()).toBe('')
    pressure.enter()
    expect(sheds()).toBe(BUSY)
    for (let i = 0; i < 10; i++) pressure.enter()
    expect(sheds()).toBe(OVER)
    const text = await telemetry.metrics.metrics()
    expect(text).toMatch(/signalbox_http_in_flight\{app="test"\} 21/)
    expect(text).toMatch(/signalbox_http_shed_total\{class="read",reason="overload",app="test"\} 2/)
    for (let i = 0; i < 11; i++) pressure.leave()
    expect(sheds()).toBe('')
  })

  it('a late event loop and high memory use count alike; a busy loop holds back only large requests', () => {
    const { sheds } = start()
    expect([sheds({ delay_ms: 250 }), sheds({ delay_ms: 251 }), sheds({ delay_ms: 501 })]).toEqual(['', BUSY, OVER])
    expect([sheds({ utilisation: 0.95 }), sheds({ utilisation: 1 })]).toEqual(['', 'batch'])
    expect([sheds({ rss_share: 0.8 }), sheds({ rss_share: 0.81 }), sheds({ rss_share: 0.91 })]).toEqual([
      '',
      BUSY,
      OVER,
    ])
  })

  it('shed requests leave no error line, an outage does', () => {
    expect([overloaded(), loginBusy(1000)].map(isFault)).toEqual([false, false])
    const broken = new AppError('internal_error', 'unexpected', 'Something went wrong on our side.')
    expect([unavailable('Postgres does not answer.'), broken].map(isFault)).toEqual([true, true])
  })
})
