import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../../apps/platform/base/paths.ts'
import { runChild } from '../../apps/platform/base/run-child.ts'
import { createScreen } from '../../apps/platform/base/screen.ts'
import { withTestServers } from './test-servers.ts'

/** `npm run bench:<area>`: one benchmark, on its own servers with `npm start`'s settings. Never a pass or a fail. */
const FOLDER = join(ROOT, 'test/bench')
const [area = '', ...args] = process.argv.slice(2)
const file = join(FOLDER, `${area}.ts`)
if (!/^[a-z]+$/.test(area) || !existsSync(file)) {
  const known = readdirSync(FOLDER).filter((name) => name.endsWith('.ts'))
  console.error(`usage: npm run bench:<area>   areas: ${known.map((name) => name.slice(0, -3)).join(', ')}`)
  process.exit(2)
}
process.exitCode = await withTestServers(createScreen(), (env) => runChild([file, ...args], { ...process.env, ...env }))
