import { spawnSync } from 'node:child_process'
import { expect, it } from 'vitest'

it('an error is logged with its message and its cause, under the names err and error', () => {
  const program = `
    import { createTelemetry } from ${JSON.stringify(new URL('../../apps/shared/telemetry.ts', import.meta.url).href)}
    const { log } = createTelemetry('test', { level: 'info' })
    const failure = new Error('no operation', { cause: new Error('the row is gone') })
    log.warn({ error: failure }, 'Activity failed')
    log.warn({ err: failure }, 'Activity failed')
    log.warn({ error: 'words alone' }, 'Activity failed')
  `
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' })
  const [sdk, ours, words] = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(sdk.error).toMatchObject({ type: 'Error', message: 'no operation: the row is gone' })
  expect(ours.err).toEqual(sdk.error)
  expect(words.error).toBe('words alone')
})
