import { spawnSync } from 'node:child_process'
import { bin, ROOT } from '../base/paths.ts'

/** `npm run format [-- paths]`: formats the sources and fixes what the linter can fix. */
const paths = process.argv.slice(2)
const { status } = spawnSync(
  process.execPath,
  [bin('biome'), 'check', '--write', '--config-path', 'test/lint.json', ...(paths.length > 0 ? paths : ['.'])],
  { cwd: ROOT, stdio: 'inherit' },
)
process.exitCode = status ?? 1
