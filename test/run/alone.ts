import { runChild } from '../../apps/platform/base/run-child.ts'
import { withRunFolder } from './run-folder.ts'

/** `npm run test:chaos` and its kin: the script of a folder of tests, in a run folder of its own, with the arguments given. */
const [folder = '', ...args] = process.argv.slice(2)
process.exitCode = await withRunFolder(() => runChild([`test/${folder}/main.ts`, ...args]))
