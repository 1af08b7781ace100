import { runMain } from './run-main.ts'

/** `npm run test:overload [-- --seconds N --connections N]`: who lists must not keep out who decides and stops. */
runMain('test/overload/main.ts')
