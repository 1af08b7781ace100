import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { AREAS } from '../../../db/migrate.ts'
import { ROOT } from '../base/paths.ts'
import { generateMigration } from './generated.ts'

/** `npm run db:generate [-- <area> …] [--name topic] [--custom]`: migrations for changed tables. */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { name: { type: 'string' }, custom: { type: 'boolean', default: false } },
})
const unknown = positionals.find((area) => !(AREAS as readonly string[]).includes(area))
if (unknown) {
  console.error(`"${unknown}" is not an area. Areas: ${AREAS.join(', ')}`)
  process.exit(2)
}
const more = [...(values.name ? ['--name', values.name] : []), ...(values.custom ? ['--custom'] : [])]
for (const area of positionals.length > 0 ? positionals : AREAS) {
  const said = await generateMigration(area, join(ROOT, 'db/migrations', area), more)
  console.log(`${area}: ${said.trim().split('\n').at(-1)}`)
}
