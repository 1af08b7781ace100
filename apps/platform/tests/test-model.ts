import { runAlone } from './run-folder.ts'

/** `npm run test:model [-- --steps N --operations N --seed N]`: random people, rights and commands, and a judge of its own. */
process.exitCode = await runAlone('test/model/main.ts')
