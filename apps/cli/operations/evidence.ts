import type { JsonWebKey } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { PersonKey } from '../../shared/contracts/identity/passkeys.ts'
import type { Gate, GateList } from '../../shared/contracts/operations/gates.ts'
import type { Evidence } from '../../shared/contracts/operations/operations.ts'
import { canonicalJson } from '../../shared/data/digest.ts'
import { type Owns, verifyEvidence } from '../../shared/evidence/verify.ts'
import { type Command, text } from '../command.ts'
import { CliError, EXIT, usageError } from '../errors.ts'
import { minute, moment, zoned } from '../terminal/output.ts'
import { askedLine } from './gate.ts'
import { operationId } from './operation.ts'

const PASSED = 'status=approved&status=bypassed&page_size=500'
const MAX_BYTES = 512 * 1_048_576
const MAX_EXECUTED = 50

/** The evidence of an operation: its chain, as a file that anyone can verify offline. */
export const evidenceCommands: Command[] = [
  {
    name: 'evidence list',
    takes: 'OP',
    about: 'Lists the records of an operation, in the order of the chain; --all follows it to the end.',
    examples: ['evidence list 77b0aa --all'],
    run: async (context, [given = '']) => {
      const { api, out, all } = context
      const path = `/api/v1/operations/${await operationId(context, given)}/evidence`
      const records: Evidence['records'] = []
      for (let more = true; more; ) {
        const page = await api.get<Evidence>(`${path}?limit=1000&after_seq=${records.at(-1)?.seq ?? 0}`)
        records.push(...page.records)
        more = all && page.records.length > 0 && records.length < page.head.seq
      }
      out.list(records, 'hash', [
        ['seq', ({ seq }) => seq],
        [zoned('when'), ({ at }) => minute(at)],
        ['kind', ({ kind }) => kind],
        ['who', ({ actor }) => actor.name],
        ['what', ({ statement }) => statement],
      ])
    },
  },
  {
    name: 'evidence export',
    takes: 'OP',
    about: 'Prints the whole chain with its signed head, as evidence verify reads it.',
    examples: ['evidence export 77b0aa > evidence.jsonl', 'evidence export 77b0aa --approved > bundle.jsonl'],
    options: { approved: { type: 'boolean', about: 'append the approved subjects, so that they can be read offline' } },
    run: async ({ api, ...context }, [given = ''], { approved }) => {
      const path = `/api/v1/operations/${await operationId({ api, ...context }, given)}`
      const passed: unknown[] = []
      // Read before the chain, so that the chain covers all of them.
      const { items } = approved ? await api.get<GateList>(`${path}/gates?${PASSED}`) : { items: [] }
      for (const { gate_id } of items) passed.push((await api.get<Gate>(`${path}/gates/${gate_id}`)).subject)
      process.stdout.write(await api.get<string>(`${path}/evidence?format=jsonl`))
      for (const subject of passed) process.stdout.write(`${canonicalJson({ approved: subject })}\n`)
    },
  },
  {
    name: 'evidence keys',
    about: 'Prints the public keys of exports, for evidence verify --keys. Store them separately from the exports.',
    examples: ['evidence keys > keys.json', 'evidence keys --people > people.json'],
    options: {
      people: {
        type: 'boolean',
        about: "print the public keys of people's passkeys instead, for evidence verify --people",
      },
    },
    run: async ({ api, out }, _, { people }) => {
      const keys = people
        ? { people: await api.list<PersonKey>('/api/v1/admin/passkeys', { page_size: '500' }, true) }
        : await api.get('/api/v1/evidence/keys')
      out.print(JSON.stringify(keys, null, 2))
    },
  },
  {
    name: 'evidence verify',
    takes: 'FILE',
    about:
      'Verifies an exported file, recounts its votes and names the first record that fails. With --keys FILE it asks no server.',
    examples: [
      'evidence verify evidence.jsonl --keys keys.json',
      'evidence verify evidence.jsonl --complete --require-signatures',
      'evidence verify evidence.jsonl --keys keys.json --people people.json',
    ],
    options: {
      keys: {
        type: 'string',
        value: 'FILE',
        about: 'the public keys, from evidence keys; without it the server is asked',
      },
      people: {
        type: 'string',
        value: 'FILE',
        about: "people's public keys, from evidence keys --people; a vote signed with another key fails",
      },
      complete: { type: 'boolean', about: 'fail if the operation had not ended when the file was made' },
      'require-signatures': { type: 'boolean', about: 'fail if an approval has no signature of a passkey' },
    },
    run: async ({ api, out }, [file = ''], values) => {
      const given = text(values, 'keys')
      const keys = given === undefined ? await api.get('/api/v1/evidence/keys') : jsonIn(given, 'evidence keys')
      const people = text(values, 'people')
      const owns = people === undefined ? undefined : ownsIn(jsonIn(people, 'evidence keys --people'), people)
      const verified = verifyEvidence(read(file), keysOf(keys, given ?? 'the server'), owns)
      if ('fault' in verified) {
        const { line, what, why } = verified.fault
        throw new CliError(EXIT.failed, `BROKEN   ${file}, line ${line}: ${NAMES[what](line)}: ${why}.`)
      }
      const { records, head } = verified
      out.one(
        verified,
        () => head.hash,
        () => [
          `HOLDS    ${records} records of operation ${head.operation_id}, from plan ${head.plan_hash} to ${head.hash}`,
          `         signed ${moment(head.made_at)} with key ${head.kid}`,
          ...countOf(verified, people),
          endOf(verified),
          ...executedOf(verified),
          ...shownOf(verified),
        ],
      )
      if (values.complete === true && verified.ended === null)
        throw new CliError(EXIT.failed, `${file} is incomplete: the operation had not ended when it was exported.`)
      if (values['require-signatures'] === true) requireSignatures(file, verified)
    },
  },
]

type Held = Exclude<ReturnType<typeof verifyEvidence>, { fault: unknown }>

const requireSignatures = (file: string, { counted, unsigned }: Held): void => {
  if (!counted) throw new CliError(EXIT.failed, `${file} does not record whose votes passed its gates.`)
  if (unsigned.length > 0)
    throw new CliError(EXIT.failed, `${file} has approvals without a signature, in records ${unsigned.join(', ')}.`)
}

const endOf = ({ ended }: Held): string =>
  ended
    ? `ENDED    ${ended.status ?? 'as the last record says'}, ${moment(ended.at)}`
    : 'NOT ENDED  No record of an end: the chain continues, or was cut where it was signed.'

/** The approved subjects, if the file includes them; a subject that a later change replaced is no longer known. */
const shownOf = ({ shown, approved }: Held): string[] =>
  shown.flatMap(({ gate_id, releases, asked }, i) => [
    `SHOWN    ${i + 1} of ${approved.length} approvals: at ${gate_id}`,
    ...(asked ? [`         ${askedLine(asked)}`] : []),
    ...releases.map(({ name, inputs }) => `         ${name} ${canonicalJson(inputs)}`),
  ])

/** The recount of votes and starts; the chain of an older build has no votes to count. */
const countOf = ({ counted, decisions, starts, oldest_ms, signed }: Held, people: string | undefined): string[] =>
  counted
    ? [
        `SIGNED   ${signed} votes with passkeys; ${people ?? 'only the server'} vouches that a key is its voter's`,
        `COUNTED  ${decisions} decisions by their votes, ${starts} starts behind gates; voters proved at most ${(oldest_ms / 1000).toFixed(1)} s before`,
      ]
    : ['FORM ONLY  An older build made this chain: it does not record whose votes passed its gates.']

/** The programs that agents ran, by their own words; each saved plan was compared with the approvals that the file shows. */
const executedOf = ({ executed }: Held): string[] => {
  const lines = executed.slice(0, MAX_EXECUTED).map(({ id, tool, version, tool_sha256, exit, ...ran }) => {
    const short = (name: string, value: unknown) =>
      value === undefined ? [] : [`${name} ${String(value).slice(0, 12)}`]
    const parts = [...short('sha256', tool_sha256), ...short('exit', exit), ...short('plan', ran.content_sha256)]
    return `         ${[[id, tool, version].filter(Boolean).join(' '), ...parts, ...short('commit', ran.commit)].join(', ')}`
  })
  return executed.length === 0 ? [] : [`EXECUTED ${executed.length} attempts by agents, in their words:`, ...lines]
}

const NAMES = { record: (line: number) => `record ${line}`, head: () => 'the head', file: () => 'the file' }

const read = (file: string): Buffer => {
  try {
    const bytes = readFileSync(file === '-' ? 0 : file)
    if (bytes.length > MAX_BYTES) throw new Error(`it is larger than ${MAX_BYTES / 1_048_576} MiB`)
    return bytes
  } catch (error) {
    throw usageError(`${file} cannot be read: ${(error as Error).message}`)
  }
}

const jsonIn = (file: string, command: string): unknown => {
  try {
    return JSON.parse(read(file).toString('utf8'))
  } catch (error) {
    if (error instanceof CliError) throw error
    throw usageError(`${file} is not JSON, so it holds no keys. "signalbox ${command}" prints them.`)
  }
}

const keysOf = (given: unknown, from: string): JsonWebKey[] => {
  const keys = (given as { keys?: unknown } | null)?.keys
  const usable = Array.isArray(keys)
    ? keys.filter(
        (key: JsonWebKey | null) => key?.kty === 'OKP' && key.crv === 'Ed25519' && /^[\w-]{43}$/.test(key.x ?? ''),
      )
    : []
  if (usable.length === 0) throw usageError(`${from} holds no Ed25519 key of a JWKS.`)
  return usable
}

const ownsIn = (given: unknown, from: string): Owns => {
  const people = (given as { people?: unknown } | null)?.people
  if (!Array.isArray(people))
    throw usageError(`${from} holds no list of people. "signalbox evidence keys --people" prints it.`)
  const keyOf = (one: Partial<PersonKey> | null) => canonicalJson([one?.user_id, one?.jwk, one?.username])
  const known = new Set(people.map(keyOf))
  return (voter, jwk, name) => known.has(canonicalJson([voter, jwk, name]))
}
