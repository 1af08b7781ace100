import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { runVerb } from './support/verb.ts'

const home = mkdtempSync(join(tmpdir(), 'signalbox-scan-'))
afterAll(() => rmSync(home, { recursive: true, force: true }))

it.each([{ CI: '1' }, {}])('a scan that cannot run says so and exits with 1: %j', async (env) => {
  // No Helm, no Python and an empty cache.
  const scan = runVerb('scan', [], { env: { ...env, PATH: home, SIGNALBOX_CACHE: join(home, 'cache') } })
  expect([await scan.ended, scan.text()]).toEqual([1, expect.stringContaining('NOT RUN: Checkov')])
  expect(scan.text()).not.toContain('    at ')
})
