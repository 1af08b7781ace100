import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { AREAS } from '../../../db/migrate.ts'
import { ROOT } from '../base/paths.ts'
import { misused, readFlags } from '../base/screen.ts'
import { generateMigration } from './generated.ts'

/** `npm run db:generate [-- <area> …] [--name topic] [--custom]`: migrations for changed tables. */
const { values, positionals } = readFlags(
  { allowPositionals: true, options: { name: { type: 'string' }, custom: { type: 'boolean', default: false } } },
  misused(`usage: npm run db:generate [-- AREA …] [--name TOPIC] [--custom]   (areas: ${AREAS.join(', ')})`),
)
const unknown = positionals.find((area) => !(AREAS as readonly string[]).includes(area))
if (unknown) misused(`"${unknown}" is not an area. Areas: ${AREAS.join(', ')}`)()
const more = [...(values.name ? ['--name', values.name] : []), ...(values.custom ? ['--custom'] : [])]
for (const area of positionals.length > 0 ? positionals : AREAS) {
  const folder = join(ROOT, 'db/migrations', area)
  const said = await generateMigration(area, folder, more)
  // The next migration is the difference to the newest snapshot. Git keeps the older ones.
  const snapshots = readdirSync(join(folder, 'meta')).filter((file) => file.endsWith('_snapshot.json'))
  for (const file of snapshots.sort().slice(0, -1)) rmSync(join(folder, 'meta', file))
  console.log(`${area}: ${said.trim().split('\n').at(-1)}`)
}
