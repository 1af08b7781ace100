import { writeSettings } from '../deploy/reference.ts'
import { writeSchemas } from './generated.ts'

/** `npm run settings`: the reference of all settings and the schemas of all files, from the code that reads them. */
writeSchemas()
console.log(`${writeSettings()} is up to date.`)
