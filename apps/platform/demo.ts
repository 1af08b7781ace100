import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { type Account, ApiError } from './demo/client.ts'
import { ManifestError } from './demo/kubernetes.ts'
import { runManifestStory, runSmallStory } from './demo/stories.ts'

/** `npm run demo [-- --from <kubernetes manifest>]`: a roll-out through the public API of the running platform, step by step. */
const DIR = process.env.SIGNALBOX_DIR ?? '.signalbox'

const readState = <T>(file: string, hint: string): T => {
  try {
    return JSON.parse(readFileSync(`${DIR}/${file}`, 'utf8')) as T
  } catch {
    console.error(`${DIR}/${file} is not there: ${hint}`)
    process.exit(1)
  }
}

const { values } = parseArgs({ options: { from: { type: 'string' } }, strict: true })
const run = readState<{ gateway: string; apps: Record<string, { port: number }> }>(
  'run.json',
  'start the platform first, with npm start.',
)
const { users } = readState<{ users: Account[] }>('demo.json', 'start the platform with its demo data: npm start.')
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
