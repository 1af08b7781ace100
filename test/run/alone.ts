import { runChild } from '../../apps/platform/base/run-child.ts'
import { withRunFolder } from './run-folder.ts'

/** `npm run test:chaos` and its kin: runs a test folder's script in its own run folder, with the given arguments. */
const [folder = '', ...args] = process.argv.slice(2)
process.exitCode = await withRunFolder(() => runChild([`test/${folder}/main.ts`, ...args]))
