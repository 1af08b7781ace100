import { ROOT } from '../base/paths.ts'
import { writeOpenapi } from './openapi/files.ts'

/** `npm run openapi`: the OpenAPI 3.1 documents of the public APIs, from the routes. */
for (const file of await writeOpenapi()) console.log(file.slice(ROOT.length + 1))
process.exit(0)
