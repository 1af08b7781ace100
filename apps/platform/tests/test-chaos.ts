import { runMain } from './run-main.ts'

/** `npm run test:chaos -- --kills N [--seed N]`: a platform of its own whose processes are killed at random moments. */
runMain('test/chaos/main.ts')
