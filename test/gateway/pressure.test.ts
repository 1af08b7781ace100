import { expect, it } from 'vitest'
import { createPressure } from '../../apps/gateway/pressure.ts'

it('sheds arming and writing first, reading at twice the bound, stopping never', () => {
  const shed: string[] = []
  const pressure = createPressure({ in_flight: 10, delay_ms: 100_000 }, (kind) => shed.push(kind))
  const sheds = () => (['R', 'W', 'A', 'S'] as const).filter(pressure.sheds).join('')
  for (let i = 0; i < 10; i++) pressure.enter()
  expect(sheds()).toBe('')
  pressure.enter()
  expect(sheds()).toBe('WA')
  for (let i = 0; i < 10; i++) pressure.enter()
  expect(sheds()).toBe('RWA')
  for (let i = 0; i < 11; i++) pressure.leave()
  expect(sheds()).toBe('')
  expect(shed.join('')).toBe('WARWA')
  pressure.close()
})
