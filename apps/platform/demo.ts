import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { signalboxDir } from './base/paths.ts'
import { readRun } from './base/record.ts'
import { readDemo } from './demo/accounts.ts'
import { ApiError } from './demo/client.ts'
import { ManifestError } from './demo/kubernetes.ts'
import { seedDemo } from './demo/seed.ts'
import { runManifestStory, runSmallStory } from './demo/stories.ts'
import type { Run } from './run/supervisor.ts'

/**
 * `npm run demo [-- --from <kubernetes manifest>]`: a roll-out through the public API of the running platform, step by
 * step. `--seed [--hosts N]` resumes the demo data of a start that was interrupted.
 */
const { values } = parseArgs({
  options: { from: { type: 'string' }, seed: { type: 'boolean' }, hosts: { type: 'string', default: '24' } },
  strict: true,
})
const dir = signalboxDir()
const fail = (words: string): never => {
  console.error(words)
  process.exit(1)
}
const run = readRun<Run>(dir) ?? fail(`No platform runs on ${dir}: start it first, with npm start.`)
if (values.seed) {
  const context = { run, signalbox_dir: dir, hosts: Number(values.hosts), log: (line: string) => console.log(line) }
  await seedDemo(context).catch((error: Error) => fail(`demo: ${error.message}`))
  console.log(`The demo is there. Its accounts: ${join(dir, 'demo.json')}`)
  process.exit(0)
}
const { users } =
  readDemo(dir) ?? fail(`${dir}/demo.json is not there: start the platform with its demo data: npm start.`)
const story = {
  gateway_url: run.gateway,
  fleet_url: `http://127.0.0.1:${run.apps.fleet?.port ?? 7181}`,
  accounts: users,
  print: (line: string) => console.log(line),
}
try {
  const status = values.from ? await runManifestStory(story, values.from) : await runSmallStory(story)
  process.exitCode = status.startsWith('succeeded') ? 0 : 5
} catch (error) {
  if (!(error instanceof ManifestError || error instanceof ApiError || error instanceof Error)) throw error
  console.error(values.from && error instanceof ManifestError ? `${values.from}: ${error.message}` : error.message)
  process.exitCode = 1
}
