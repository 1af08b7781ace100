import { afterEach, expect, it, vi } from 'vitest'
import { signWith } from '../../apps/console/session/passkeys.ts'

vi.mock('@simplewebauthn/browser', () => ({ startAuthentication: () => new Promise(() => {}) }))
afterEach(() => void vi.useRealTimers())

it('a passkey dialog that never answers gives no signature, so that whoever waits for it can go on', async () => {
  vi.useFakeTimers()
  const signed = signWith({ challenge: 'c', rp_id: 'signalbox.example' })
  await vi.advanceTimersByTimeAsync(180_000)
  expect(await signed).toBeNull()
})
