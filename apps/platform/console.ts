import { join } from 'node:path'
import { bin, ROOT, signalboxDir } from './base/paths.ts'
import { readRun } from './base/record.ts'
import { runChild } from './base/run-child.ts'
import type { Run } from './run/supervisor.ts'

/**
 * `npm run console`: the console from its sources with Vite's development server, against the running platform.
 * `npm run console -- build` builds it into SIGNALBOX_CONSOLE_DIR.
 */
const gateway = process.env.SIGNALBOX_GATEWAY ?? readRun<Run>(signalboxDir())?.gateway
if (!gateway && !process.argv.includes('build'))
  console.error('The platform is not running: start it with npm start, or set SIGNALBOX_GATEWAY.')
const args = [bin('vite'), '--config', join(ROOT, 'apps/console/vite.config.ts'), ...process.argv.slice(2)]
process.exitCode = await runChild(args, { ...process.env, ...(gateway && { SIGNALBOX_GATEWAY: gateway }) })
