import { join } from 'node:path'
import { ROOT } from '../base/paths.ts'
import { runChild } from '../base/run-child.ts'
import { withRunFolder } from './run-folder.ts'

/** `npm run test:model [-- --steps N --operations N --seed N]`: random people, rights and commands, and a judge of its own. */
process.exitCode = await withRunFolder(() => runChild([join(ROOT, 'test/model/main.ts'), ...process.argv.slice(2)]))
