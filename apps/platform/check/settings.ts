import { writeSettings } from '../deploy/reference.ts'

/** `npm run settings`: the reference of all settings, from the schemas by which the apps read them. */
console.log(`${writeSettings()} is up to date.`)
