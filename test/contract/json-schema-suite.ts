import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { foreignRefs, violationsOf } from '../../apps/catalog/document/schemas.ts'
import { compileSchema } from '../../apps/shared/data/json-schema.ts'

/**
 * The public JSON Schema Test Suite (draft 2020-12) against the dialect of packs. The suite is not published in a form
 * that a lock file can pin, so a person points this at a copy:
 *
 *     git clone https://github.com/json-schema-org/JSON-Schema-Test-Suite /tmp/suite
 *     npx --no-install node test/contract/json-schema-suite.ts /tmp/suite/tests/draft2020-12
 *
 * The dialect is smaller than the draft: a pack's schema is an object without a name and without outside references.
 * Ajv's strict mode refuses unknown keywords. Such cases count as outside; every other answer must be the suite's.
 * Exits with 1 if one is not.
 */
type Group = { description: string; schema: unknown; tests: { description: string; data: unknown; valid: boolean }[] }

/** Answers that differ from the suite's, with the reason; any other difference is a fault. */
const KNOWN: [RegExp, string][] = [
  [/^format\.json: .* is only an annotation by default/, 'formats are checked here, which the draft leaves open'],
  [/^properties\.json: .*__proto__ not valid/, 'Ajv reads a property schema named __proto__ not at all'],
  [/^dynamicRef\.json: \$dynamicRef points to a boolean schema/, 'Ajv does not follow $dynamicRef to a boolean'],
  [
    /^unevaluated(Items|Properties)\.json: .*(nested items|nested contains|then not defined)/,
    'Ajv loses some annotations of nested schemas',
  ],
]

type Check = (value: unknown) => boolean
/** The two readers of schemas: one for resource packs, and one for procedure packs that is less strict about types. */
const ENGINES: Record<string, (schema: object) => Check> = {
  catalog: (schema) => {
    const check: Check = (value) => violationsOf(schema, value, '').length === 0
    check({})
    return check
  },
  operations: (schema) => {
    const check = compileSchema(schema)
    return (value) => check(value).length === 0
  },
}

/** Returns the check of a schema, or why the schema is outside the dialect. */
const compile = (engine: string, given: unknown): Check | string => {
  if (typeof given !== 'object' || given === null) return 'a schema that is no object'
  const { $schema: _, ...schema } = given as Record<string, unknown>
  if (foreignRefs(schema).length > 0) return 'names or references beyond the schema'
  try {
    return ENGINES[engine]?.(schema) ?? 'no such engine'
  } catch (error) {
    return `refused: ${(error as Error).message.replaceAll(/"[^"]*"/g, '…').slice(0, 60)}`
  }
}

const main = (folder: string | undefined): number => {
  if (folder === undefined) {
    process.stderr.write('usage: json-schema-suite.ts FOLDER   (tests/draft2020-12 of JSON-Schema-Test-Suite)\n')
    return 2
  }
  const groups = readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .flatMap((file) =>
      (JSON.parse(readFileSync(join(folder, file), 'utf8')) as Group[]).map((group) => ({ file, ...group })),
    )
  const wrong = Object.keys(ENGINES).flatMap((engine) => runOne(engine, groups))
  for (const line of wrong) process.stdout.write(`WRONG ${line}\n`)
  return wrong.length === 0 ? 0 : 1
}

const runOne = (engine: string, groups: ({ file: string } & Group)[]): string[] => {
  const outside = new Map<string, number>()
  const differs = new Map<string, number>()
  const wrong: string[] = []
  let right = 0
  for (const { file, description, schema, tests } of groups) {
    const check = compile(engine, schema)
    if (typeof check === 'string') {
      outside.set(check, (outside.get(check) ?? 0) + tests.length)
      continue
    }
    for (const { description: what, data, valid } of tests)
      if (check(data) === valid) right += 1
      else {
        const name = `${file}: ${description}: ${what}`
        const known = KNOWN.find(([pattern]) => pattern.test(name))?.[1]
        if (known === undefined) wrong.push(`${engine}: ${name} (should be ${valid})`)
        else differs.set(known, (differs.get(known) ?? 0) + 1)
      }
  }
  process.stdout.write(`${engine}: ${right} as the suite says, ${wrong.length} not\n`)
  for (const [why, count] of [...outside].sort((a, b) => b[1] - a[1]))
    process.stdout.write(`  ${count} outside the dialect: ${why}\n`)
  for (const [why, count] of differs) process.stdout.write(`  ${count} differ: ${why}\n`)
  return wrong
}

process.exitCode = main(process.argv[2])
