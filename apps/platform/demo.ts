import { join } from 'node:path'
import { table } from '../shared/data/print.ts'
import { signalboxDir } from './base/paths.ts'
import { readRun } from './base/record.ts'
import { readFlags } from './base/screen.ts'
import { readDemo } from './demo/accounts.ts'
import { ApiError } from './demo/client.ts'
import { ManifestError } from './demo/kubernetes.ts'
import { demoTools } from './demo/runner.ts'
import { DEMO_HOSTS, seedDemo } from './demo/seed.ts'
import { runManifestStory, runSmallStory, runToolStory } from './demo/stories.ts'
import type { Run } from './run/supervisor.ts'

/** Scenarios through the public API of the running platform, step by step. */
const USAGE = `usage: npm run demo -- [SCENARIO]      apps, opentofu or git; apps when none is named
       npm run demo -- --list          what each shows, and whether this machine can
       npm run demo -- --from FILE     rolls out the Deployments of a Kubernetes manifest
       npm run demo -- --seed          resumes the demo data of a start that stopped half-way`
const fail = (words: string, code = 1): never => {
  console.error(words)
  process.exit(code)
}
const options = { from: { type: 'string' }, seed: { type: 'boolean' }, list: { type: 'boolean' } } as const
const { values, positionals } = readFlags({ options, allowPositionals: true }, () => fail(USAGE, 2))
const dir = signalboxDir()
const tools = demoTools(dir)
if (values.list) {
  const rows = tools.map(({ name, shows, lacks }) => [name, lacks ? `${shows} (${lacks})` : shows])
  const apps = ['apps', 'a release over four hosts of its own, in waves']
  const manifest = ['--from FILE', 'Deployments of a Kubernetes manifest, in the order of their dependencies']
  for (const line of table(['scenario', 'shows'], [apps, ...rows, manifest])) console.log(line)
  process.exit(0)
}
const [scenario = 'apps', ...others] = positionals
const tool = tools.find(({ name }) => name === scenario)
if (others.length > 0 || (scenario !== 'apps' && !tool)) fail(USAGE, 2)
const run = readRun<Run>(dir) ?? fail(`No platform runs on ${dir}: start it first, with npm start.`)
if (tool?.lacks) fail(`${scenario} cannot be shown yet: ${tool.lacks}.`)
if (values.seed) {
  const context = { run, signalbox_dir: dir, hosts: DEMO_HOSTS, log: (line: string) => console.log(line) }
  await seedDemo(context).catch((error: Error) => fail(`demo: ${error.message}`))
  console.log(`The demo data is complete. Its accounts: ${join(dir, 'demo.json')}`)
  process.exit(0)
}
const { users } =
  readDemo(dir) ?? fail(`${dir}/demo.json does not exist: start the platform with its demo data: npm start.`)
const story = {
  gateway_url: run.gateway,
  fleet_url: `http://127.0.0.1:${run.apps.fleet?.port ?? 7181}`,
  accounts: users,
  print: (line: string) => console.log(line),
}
try {
  const status = values.from
    ? await runManifestStory(story, values.from)
    : tool
      ? await runToolStory(story, tool.name, dir)
      : await runSmallStory(story)
  process.exitCode = status.startsWith('succeeded') ? 0 : 5
} catch (error) {
  if (!(error instanceof ManifestError || error instanceof ApiError || error instanceof Error)) throw error
  console.error(values.from && error instanceof ManifestError ? `${values.from}: ${error.message}` : error.message)
  process.exitCode = 1
}
