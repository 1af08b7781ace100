import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { AREAS } from '../../../db/migrate.ts'
import { bin, ROOT } from '../base/paths.ts'
import { FORMS, type Form, schemaText } from '../packs/schemas.ts'
import { run } from '../servers/sources.ts'

/** Committed files generated from sources: how to regenerate them, and whether the committed ones are current. */
const CONTRACTS = join(ROOT, 'apps/shared/contracts')
const GENERATE_MS = 120_000

const withScratch = async <T>(work: (scratch: string) => Promise<T>): Promise<T> => {
  const scratch = mkdtempSync(join(tmpdir(), 'signalbox-generate-'))
  try {
    return await work(scratch)
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

/** Generates the TypeScript of auth.proto into `<out>/gen`. */
export const generateProto = (out: string = CONTRACTS): Promise<string> =>
  run(bin('buf'), ['generate', '-o', out], {
    timeout_ms: GENERATE_MS,
    cwd: CONTRACTS,
    env: { PATH: `${join(ROOT, 'node_modules/.bin')}:${process.env.PATH}` },
  })

export const staleProto = (): Promise<string[]> =>
  withScratch(async (scratch) => {
    await generateProto(scratch)
    return differences(join(scratch, 'gen'), join(CONTRACTS, 'gen')).map((file) => `${file}: run npm run proto`)
  })

const SCHEMAS = join(CONTRACTS, 'schemas')

/** Writes the JSON Schemas of the files that people write; the first line of each shipped file names its schema. */
export const writeSchemas = (out: string = SCHEMAS): void => {
  mkdirSync(out, { recursive: true })
  for (const form of Object.keys(FORMS) as Form[]) writeFileSync(join(out, `${form}.json`), `${schemaText(form)}\n`)
}

export const staleSchemas = (): Promise<string[]> =>
  withScratch(async (scratch) => {
    writeSchemas(scratch)
    return differences(scratch, SCHEMAS).map((file) => `${file}: run npm run settings`)
  })

export const generateMigration = (area: string, out: string, more: string[] = []): Promise<string> => {
  const schema =
    [`./db/${area}/tables.ts`, `./db/${area}/tables/index.ts`].find((file) => existsSync(join(ROOT, file))) ?? ''
  const options = ['--dialect', 'postgresql', '--schema', schema, '--out', relative(ROOT, out), ...more]
  return run(process.execPath, [bin('drizzle-kit'), 'generate', ...options], { timeout_ms: GENERATE_MS, cwd: ROOT })
}

/** Areas whose tables differ from their migrations. */
export const staleMigrations = (): Promise<string[]> =>
  withScratch(async (scratch) => {
    const stale = await Promise.all(
      AREAS.map(async (area) => {
        const committed = join(ROOT, 'db/migrations', area)
        const copy = join(scratch, area)
        if (!existsSync(committed)) return `db/migrations/${area} is missing: run npm run db:generate -- ${area}`
        cpSync(committed, copy, { recursive: true })
        await generateMigration(area, copy)
        const fresh = differences(copy, committed)
        return fresh.length > 0 ? `db/${area}: the tables changed: run npm run db:generate -- ${area}` : ''
      }),
    )
    return stale.filter(Boolean)
  })

/** Names of the files that differ between two folders. */
const differences = (made: string, committed: string): string[] => {
  const list = (folder: string) =>
    existsSync(folder)
      ? readdirSync(folder, { recursive: true, withFileTypes: true })
          .filter((entry) => entry.isFile())
          .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
      : []
  const read = (folder: string, file: string) => {
    const path = join(folder, file)
    return existsSync(path) ? readFileSync(path, 'utf8') : undefined
  }
  return [...new Set([...list(made), ...list(committed)])]
    .filter((file) => read(made, file) !== read(committed, file))
    .map((file) => relative(ROOT, join(committed, file)))
}
