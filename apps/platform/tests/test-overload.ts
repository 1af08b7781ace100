import { join } from 'node:path'
import { ROOT } from '../base/paths.ts'
import { runChild } from '../base/run-child.ts'
import { withRunFolder } from './run-folder.ts'

/** `npm run test:overload [-- --seconds N --connections N]`: who lists must not keep out who decides and stops. */
process.exitCode = await withRunFolder(() => runChild([join(ROOT, 'test/overload/main.ts'), ...process.argv.slice(2)]))
