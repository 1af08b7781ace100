import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, expect, it } from 'vitest'
import { ROOT } from '../../apps/platform/base/paths.ts'

const folder = mkdtempSync(join(tmpdir(), 'signalbox-replaced-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A process that moves 200 folders of its own into the same place. */
const PROGRAM = `
import { mkdirSync, writeFileSync } from 'node:fs'
import { replaceFolder } from ${JSON.stringify(join(ROOT, 'apps/platform/run/console-build.ts'))}
for (let n = 0; n < 200; n++) {
  const made = process.argv[2] + '.' + process.pid + '.' + n
  mkdirSync(made)
  writeFileSync(made + '/whole', '')
  replaceFolder(made, process.argv[2])
}`

it('builds of several processes take the same place one after the other, and leave one whole', async () => {
  const program = join(folder, 'replace.ts')
  writeFileSync(program, PROGRAM)
  const out = join(folder, 'console')
  mkdirSync(out)
  await Promise.all(Array.from({ length: 4 }, () => promisify(execFile)(process.execPath, [program, out])))
  expect(readdirSync(folder).sort()).toEqual(['console', 'replace.ts'])
  expect(readdirSync(out)).toEqual(['whole'])
})
