import { ROOT } from '../base/paths.ts'
import { makeClientTypes, writeOpenapi } from './openapi/files.ts'

/** `npm run openapi`: the OpenAPI 3.1 documents of the public APIs, from the routes, and the types of the client. */
for (const file of await writeOpenapi()) console.log(file.slice(ROOT.length + 1))
await makeClientTypes()
process.exit(0)
