import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { bin, ROOT, signalboxDir } from './base/paths.ts'

/** `npm run console`: the console from its sources with Vite's development server, against the running platform. */
const gatewayOf = (): string | undefined => {
  try {
    return (JSON.parse(readFileSync(join(signalboxDir(), 'run.json'), 'utf8')) as { gateway: string }).gateway
  } catch {
    return undefined
  }
}

const gateway = process.env.SIGNALBOX_GATEWAY ?? gatewayOf()
if (!gateway) console.error('The platform does not run: start it with npm start, or set SIGNALBOX_GATEWAY.')
const args = [bin('vite'), '--config', join(ROOT, 'apps/console/vite.config.ts'), ...process.argv.slice(2)]
const { status } = spawnSync(process.execPath, args, {
  cwd: ROOT,
  stdio: 'inherit',
  env: { ...process.env, ...(gateway && { SIGNALBOX_GATEWAY: gateway }) },
})
process.exitCode = status ?? 1
