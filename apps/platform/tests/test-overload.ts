import { runAlone } from './run-folder.ts'

/** `npm run test:overload [-- --seconds N --connections N]`: who lists must not keep out who decides and stops. */
process.exitCode = await runAlone('test/overload/main.ts')
