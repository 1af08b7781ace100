import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { digest } from '../../../apps/shared/data/digest.ts'
import { verifyEvidence } from '../../../apps/shared/evidence/verify.ts'
import { must } from '../../operations/support/platform.ts'
import { until } from '../../support/until.ts'
import type { Lab } from './agent.ts'

type Attempt = { phase: string; attempt: number; generation: number; outputs: unknown; error: unknown; kept: number }
type Line = { statement: string; kind: string; subject: { type: string; id: string }; subject_digest: string }

/** Programs of an agent that gives out previews which no tool has made. */
export const forgery = (lab: Lab) => {
  const made = `${lab.place('forged')}/"$2"`
  const wait = `while [ ! -e ${made} ]; do sleep 0.2; done`
  const path = lab.script('forge', `${wait}\ncp ${made} "$SIGNALBOX_OUTPUTS"`)
  return { forge: { path, args: { type: 'array', items: { type: 'string' } } } }
}
/** A node of such an agent: its output `preview` is the one forged under this name, for which it waits. */
export const forging = (name: string, depends_on: string[] = []) => ({
  ...{ node_id: 'forged', executor: 'external', pool: 'infra', depends_on },
  ...{ with: { job: 'command', inputs: { program: 'forge', args: [name] } }, outputs: { preview: '/preview' } },
})
export const forgeAs = (lab: Lab, name: string, preview: object): void => {
  const path = join(lab.place('forged'), name)
  writeFileSync(`${path}.new`, JSON.stringify({ preview }))
  renameSync(`${path}.new`, path)
}
export const forged = { $from: 'nodes/forged/outputs/preview' }

/** Changes the last byte of an artifact where the control plane keeps it. */
export const alter = ({ p }: Lab, sha256: string): void => {
  const folder = p.config.OPERATIONS__ARTIFACTS__DIR
  const kept = readdirSync(folder, { recursive: true, withFileTypes: true }).find(({ name }) => name.includes(sha256))
  const at = join(kept?.parentPath ?? '', kept?.name ?? '')
  const bytes = readFileSync(at)
  bytes.writeUInt8(bytes.readUInt8(bytes.length - 1) ^ 1, bytes.length - 1)
  writeFileSync(at, bytes)
}

/**
 * Waits for the end of a node that was refused or contained. Its export verifies offline and has one record of the end,
 * with its class; the record's digest covers exactly these words and no outputs, and no artifact was kept.
 */
export const refused = async (
  lab: Lab,
  path: string,
  node_id: string,
  error_class: string,
  words: RegExp | string,
  state: 'failed' | 'outcome_unknown' = 'failed',
) => {
  const { p } = lab
  const node = await lab.reaches(path, state, node_id)
  expect(node).toMatchObject({
    ...{ error_class, outputs: null },
    error_message: typeof words === 'string' ? expect.stringContaining(words) : expect.stringMatching(words),
  })
  const rows = await p.query<Attempt>(
    `select a.phase, a.attempt, a.generation, a.outputs, a.error, (select count(*)::int from operations.operation_artifact_index i
       where i.operation_id = a.operation_id and i.node_id = a.node_id and i.attempt = a.attempt) as kept
     from operations.node_attempts a where a.operation_id = $1 and a.node_id = $2 order by attempt desc limit 1`,
    [path.split('/').at(-1), node_id],
  )
  const { phase, attempt, generation, outputs, error, kept } = rows[0] as Attempt
  expect({ phase, outputs, error, kept }).toMatchObject({
    ...{ phase: state, outputs: null, kept: 0 },
    error: { class: error_class, message: node.error_message },
  })
  const said = state === 'failed' ? 'failed' : 'ended nobody knows how'
  const statement = `Node ${node_id} ${said}, ${error_class} (attempt ${attempt})`
  const lines = await exportOf(lab, path, statement)
  const records = lines
    .trim()
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line)
  const ends = records.filter(({ kind, subject, statement: one }) => {
    const ours = subject.type === 'node' && subject.id === node_id && one.endsWith(`(attempt ${attempt})`)
    return ours && (kind === 'node_result' || kind === 'exception')
  })
  const subject_digest = digest({ node_id, state, generation, attempt, role: 'run', outputs: null, error })
  expect(ends).toMatchObject([{ statement, subject_digest }])
  expect(records.filter(({ kind }) => kind === 'catalog_result')).toEqual([])
  return node
}

/** The exported evidence of an operation once it states this; the export verifies offline. */
export const exportOf = async ({ p }: Lab, path: string, statement: string): Promise<string> => {
  const lines = await until(
    async () => {
      const { text } = must(await p.as('aud').get(`${path}/evidence?format=jsonl`), 200)
      return text.includes(statement) ? (text as string) : undefined
    },
    { what: statement },
  )
  const { keys } = must(await p.as('aud').get('/v1/evidence/keys'), 200).body
  expect(verifyEvidence(Buffer.from(lines), keys)).not.toHaveProperty('fault')
  return lines
}

/** The programs that agents ran, by the records of an export, in order. */
export const executedIn = (lines: string): Record<string, unknown>[] =>
  lines
    .trim()
    .split('\n')
    .flatMap((line) => JSON.parse(line).subject?.executed ?? [])

/** Waits for an approved preview whose diff is large or has secrets: its evidence is small and holds none of them. */
export const contained = async (lab: Lab, path: string, node_id: string, secrets: string[] = []) => {
  await lab.approve(path)
  const lines = await exportOf(lab, path, `Node ${node_id} succeeded (attempt 1)`)
  expect(lines.length).toBeLessThan(50_000)
  for (const secret of secrets) expect(lines).not.toContain(secret)
  const { digest } = must(await lab.p.as('aud').get(`${path}/gates/go`), 200).body
  expect(lines).toContain(digest)
}
