import { runAlone } from './run-folder.ts'

/** `npm run test:start -- [--platforms 10] [--at-once 5] [--load 20]`: first starts beside one another on a busy machine. */
process.exitCode = await runAlone('test/start/main.ts')
