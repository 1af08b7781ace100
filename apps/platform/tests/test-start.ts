import { join } from 'node:path'
import { ROOT } from '../base/paths.ts'
import { runChild } from '../base/run-child.ts'
import { withRunFolder } from './run-folder.ts'

/** `npm run test:start -- [--platforms 10] [--at-once 5] [--load 20]`: first starts beside one another on a busy machine. */
process.exitCode = await withRunFolder(() => runChild([join(ROOT, 'test/start/main.ts'), ...process.argv.slice(2)]))
