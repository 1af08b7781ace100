import { expect, it, vi } from 'vitest'
import { lazyPart } from '../../apps/console/ui/lazy.ts'

const Part = () => null

it('a part loads again after its early load has failed', async () => {
  vi.stubGlobal('navigator', { onLine: true })
  const load = vi.fn(async () => ({ default: Part })).mockRejectedValueOnce(new Error('the network is away'))
  const part = lazyPart(load)
  await part.preload?.()
  await part.preload?.()
  expect(part({})).toMatchObject({ type: Part })
  vi.unstubAllGlobals()
})
