import { runAlone } from './run-folder.ts'

/** `npm run test:chaos -- --kills N [--seed N]`: a platform of its own whose processes are killed at random moments. */
process.exitCode = await runAlone('test/chaos/main.ts')
