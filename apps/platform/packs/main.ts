/** What authors of packs need, without a server. The client loads it when it is asked for: `signalbox pack …`. */
export { openFolder } from './folder.ts'
export { initPack, kindsOfPacks, refuseFolder } from './init.ts'
export { rehearseTests } from './rehearse.ts'
export { FORMS, schemaText } from './schemas.ts'
export { runTests } from './tests.ts'
