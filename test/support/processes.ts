import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ROOT } from '../../apps/platform/base/paths.ts'
import { createPorts } from '../../apps/platform/base/ports.ts'
import { createProcess } from '../../apps/platform/base/process.ts'
import { entryOf } from '../../apps/platform/run/apps.ts'
import { compileCacheDir } from '../../apps/platform/run/compile-cache.ts'
import { NODE_ARGUMENTS } from '../../apps/platform/run/supervisor.ts'

/** The variables of an app's two ports: one for other clients, one for RPC, health and metrics. */
const PORTS = {
  session: ['SESSION__HTTP__PORT', 'SESSION__RPC__PORT'],
  gateway: ['GATEWAY__HTTP__PORT', 'GATEWAY__INTERNAL__PORT'],
} as const

/** A busy machine is no reason to refuse: only the limits under test apply. */
const PATIENT = {
  SIGNALBOX__PRESSURE__UTILISATION: '1',
  SIGNALBOX__PRESSURE__DELAY_MS: '60000',
  GATEWAY__PRESSURE__DELAY_MS: '60000',
}

/** Starts an app as a separate process, as production does, and waits until it is ready. */
export const startProcess = async (app: keyof typeof PORTS, env: Record<string, string>) => {
  const ports = createPorts()
  const [http, internal] = [await ports.take(app, 0), await ports.take(`${app} (internal)`, 0)]
  const [http_variable, internal_variable] = PORTS[app]
  const dir = mkdtempSync(join(tmpdir(), `signalbox-${app}-`))
  const child = createProcess(
    {
      name: app,
      command: () => ({
        command: process.execPath,
        args: [...NODE_ARGUMENTS, entryOf(app)],
        cwd: ROOT,
        env: {
          PATH: process.env.PATH,
          NODE_COMPILE_CACHE: compileCacheDir(),
          ...PATIENT,
          ...env,
          [http_variable]: String(http),
          [internal_variable]: String(internal),
        },
      }),
      probe: async () => {
        const answer = await fetch(`http://127.0.0.1:${internal}/health/ready`)
        if (!answer.ok) throw new Error(await answer.text())
      },
    },
    dir,
  )
  await child.start()
  return {
    url: `http://127.0.0.1:${http}`,
    rpc_url: `http://127.0.0.1:${internal}`,
    stop: async () => {
      await child.stop()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}
