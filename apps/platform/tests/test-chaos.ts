import { join } from 'node:path'
import { ROOT } from '../base/paths.ts'
import { runChild } from '../base/run-child.ts'
import { withRunFolder } from './run-folder.ts'

/** `npm run test:chaos -- --kills N [--seed N]`: a platform of its own whose processes are killed at random moments. */
process.exitCode = await withRunFolder(() => runChild([join(ROOT, 'test/chaos/main.ts'), ...process.argv.slice(2)]))
