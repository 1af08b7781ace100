import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { expect, it } from 'vitest'
import { ROOT } from '../../apps/platform/base/paths.ts'
import { AREAS } from '../../db/migrate.ts'
import { testDatabase } from '../support/database.ts'

const GUIDE = 'apps/platform/deploy/guides/growth.md'
/** In each schema that publishes or consumes events. */
const COMMON = ['projection', 'projection_version', 'relay_state']

it('the guide says of every table what bounds it, and names no other', async () => {
  const database = await testDatabase(...AREAS)
  const client = new pg.Client({ connectionString: database.url })
  await client.connect()
  const { rows } = await client.query<{ name: string }>(
    `select table_schema || '.' || table_name as name from information_schema.tables t
     where table_schema = any($1) and table_type = 'BASE TABLE' and not table_name = any($2)
       and not exists (select from pg_inherits where inhrelid = format('%I.%I', table_schema, table_name)::regclass)`,
    [AREAS, COMMON],
  )
  await client.end()
  await database.drop()
  const guide = readFileSync(join(ROOT, GUIDE), 'utf8')
  const named = [...guide.matchAll(/`((?:catalog|credential|identity|operations|session|token)\.\w+)`/g)].map(
    ([, n]) => n,
  )
  expect(named.toSorted()).toEqual(rows.map(({ name }) => name).toSorted())
})
