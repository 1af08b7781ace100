import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { silentScreen } from '../../apps/platform/base/screen.ts'
import { buildConsole } from '../../apps/platform/run/console-build.ts'
import { SCREENS, scriptsOf } from '../support/console-bytes.ts'

/** The production build, made here: bytes are the same on every machine. */
const scratch = mkdtempSync(join(tmpdir(), 'signalbox-bytes-'))
const out = join(scratch, 'console')
// Two at the same time, as files of tests do: each page must be there in the end.
beforeAll(() => Promise.all([buildConsole(out, silentScreen), buildConsole(out, silentScreen)]), 240_000)
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

it.each(Object.entries(SCREENS))('needs no more compressed scripts for %s than its limit', (name, { page, most }) => {
  const { bytes, files } = scriptsOf(out, page)
  expect(bytes).toBeGreaterThan(50_000)
  expect(bytes, `compressed scripts of ${name}: ${files.join(', ')}`).toBeLessThanOrEqual(most)
})

it('has the first page of each language, even if two processes build it at the same time', () => {
  expect(['index.html', 'index.de.html'].filter((name) => !existsSync(join(out, name)))).toEqual([])
})

it('links only scripts that the first screen needs from its first page', () => {
  const html = readFileSync(join(out, 'index.html'), 'utf8')
  const linked = [...html.matchAll(/(?:src|href)="\/(assets\/[^"]+\.js)"/g)].map(([, path]) => path as string)
  const { files } = scriptsOf(out, undefined)
  expect(linked.filter((path) => !path.includes('theme')).sort()).toEqual([...files].sort())
})
