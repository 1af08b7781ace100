/** For authors of packs and agents, without a server: the client loads it for `signalbox pack` and `agent conformance`. */
export { ConformanceFile, proveAgent } from '../proving/prove.ts'
export { openFolder } from './folder.ts'
export { initPack, kindsOfPacks, refuseFolder } from './init.ts'
export { rehearseTests } from './rehearse.ts'
export { runSandbox } from './sandbox.ts'
export { FORMS, schemaText } from './schemas.ts'
export { runTests } from './tests.ts'
