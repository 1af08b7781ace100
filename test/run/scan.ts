import { execFile, execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ROOT } from '../../apps/platform/base/paths.ts'
import { createScreen } from '../../apps/platform/base/screen.ts'
import { table } from '../../apps/shared/data/print.ts'
import { findHelm } from './cluster-tools.ts'
import { pythonTools } from './python-tools.ts'

/**
 * `npm run scan`: Checkov's findings in the chart and the Dockerfile, and npm's advisories for the packages of production.
 * Each finding must be in the table of apps/platform/README.md, and each rule in that table must be found: otherwise, or
 * with an advisory, exits with 1. So does a Checkov that cannot run. A registry that answers no advisories is reported,
 * and in CI a failure.
 */
const CHECKOV = 'checkov==3.3.30'
const DEPLOY = 'apps/platform/deploy'
const DIGEST = `sha256:${'a'.repeat(64)}`
const AGENT = {
  replicas: 1,
  image: `agent@${DIGEST}`,
  secret: 'agent',
  memory: '1Gi',
  egress: [{ ports: [{ port: 443 }] }],
}
const AGENTS = { plain: AGENT, sandboxed: { ...AGENT, sandbox: true } }
/** As a release is installed: `helm install` gives the namespace, and images are named by their digests. */
const RELEASE = [
  ...['--namespace', 'signalbox', '--set', `image.digest=${DIGEST}`],
  ...['--set-json', `agents=${JSON.stringify(AGENTS)}`],
]
const screen = createScreen()

type Found = { check_id: string; check_name: string }
type Report = { results: { failed_checks: Found[] } }

const findings = async (): Promise<Found[]> => {
  const scratch = mkdtempSync(join(tmpdir(), 'signalbox-scan-'))
  try {
    const chart = join(scratch, 'chart.yaml')
    const rendered = ['template', 'signalbox', join(ROOT, DEPLOY, 'chart'), ...RELEASE]
    writeFileSync(chart, execFileSync(await findHelm(), rendered, { stdio: ['ignore', 'pipe', 'ignore'] }))
    const program = join(await pythonTools([CHECKOV], screen), 'checkov')
    const args = ['--quiet', '--compact', '--skip-download', '--soft-fail', '-o', 'json', '--file', chart]
    const options = { env: { ...process.env, LOG_LEVEL: 'ERROR' }, maxBuffer: 64 * 1024 * 1024 }
    const { stdout } = await promisify(execFile)(program, [...args, join(ROOT, DEPLOY, 'Dockerfile')], options)
    return (JSON.parse(stdout) as Report[]).flatMap(({ results }) => results.failed_checks)
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

/** The number of advisories; undefined if the registry answers none. */
const advisories = (): Promise<number | undefined> =>
  new Promise((resolve) => {
    execFile('npm', ['audit', '--omit', 'dev', '--json'], { cwd: ROOT }, (_error, stdout) => {
      const { metadata } = JSON.parse(stdout || '{}') as { metadata?: { vulnerabilities?: { total: number } } }
      resolve(metadata?.vulnerabilities?.total)
    })
  })

const found = await findings().catch((error: Error) => {
  console.error(`NOT RUN: Checkov did not read the chart and the Dockerfile: ${error.message}`)
  process.exit(1)
})
const explained = new Set(readFileSync(join(ROOT, 'apps/platform/README.md'), 'utf8').match(/CKV\w*_\d+/g))
const by_rule = Map.groupBy(found, ({ check_id }) => check_id)
const rows = [...by_rule].map(([id, all]) => [
  id,
  String(all.length),
  all[0]?.check_name ?? '',
  explained.has(id) ? 'explained' : 'NOT EXPLAINED',
])
for (const line of table(['rule', 'places', 'finding', ''], rows)) console.log(line)
const gone = [...explained].filter((id) => !by_rule.has(id))
if (gone.length > 0) console.log(`The README explains what is no longer found: ${gone.join(', ')}`)
const count = await advisories()
console.log(count === undefined ? 'NOT RUN: the registry answers no advisories.' : `npm: ${count} advisories`)
const unasked = count === undefined && Boolean(process.env.CI)
process.exitCode =
  unasked || gone.length > 0 || rows.some(([id = '']) => !explained.has(id)) || (count ?? 0) > 0 ? 1 : 0
