import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { PUBLIC_DOCUMENT } from '../../../apps/platform/check/openapi/files.ts'
import { ROLES, startOperation, startWorld } from '../world.ts'

/**
 * What the world's own tools make of the document, against a started platform: a Python client is generated and used,
 * and schemathesis sends what the document allows. `npm run test:clients` starts it with the tools in PYTHON_BIN.
 */
const bin = (name: string) => join(process.env.PYTHON_BIN ?? '', name)
const CONFIG = 'project_name_override: signalbox\npackage_name_override: signalbox_client\npost_hooks: []\n'

const run = (program: string, args: string[], env: Record<string, string> = {}): Promise<void> =>
  new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: 'inherit', env: { ...process.env, ...env } })
    child.on('error', reject)
    child.on('exit', (code) => (code === 0 ? resolve() : reject(new Error(`${program} ended with ${code}`))))
  })

const scratch = mkdtempSync(join(tmpdir(), 'signalbox-python-'))
const world = await startWorld({
  apps: ['token', 'credential', 'identity', 'session', 'catalog', 'operations', 'worker', 'relay', 'gateway'],
})
try {
  await world.addUser('zoe', ROLES)
  const { access_token } = await world.login('zoe')
  const { operation_id } = await startOperation(world, access_token)
  const url = world.stack.gateway_url

  const config = join(scratch, 'config.yml')
  writeFileSync(config, CONFIG)
  const output = join(scratch, 'signalbox_client')
  const generate = [
    'generate',
    '--path',
    PUBLIC_DOCUMENT,
    '--config',
    config,
    '--meta',
    'none',
    '--output-path',
    output,
  ]
  await run(bin('openapi-python-client'), [...generate, '--fail-on-warning'])
  await run(bin('python'), [fileURLToPath(new URL('client.py', import.meta.url))], {
    CLIENT_DIR: scratch,
    SIGNALBOX_URL: url,
    PASSWORD: world.password,
    OPERATION_ID: operation_id,
  })

  const checks = 'not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance'
  const limits = [
    '--max-examples',
    process.env.EXAMPLES ?? '10',
    '--exclude-tag',
    'events',
    '--request-timeout',
    '10',
    '--no-color',
  ]
  const probe = ['run', PUBLIC_DOCUMENT, '--url', url, '--checks', checks, '--phases', 'examples,fuzzing', ...limits]
  const { access_token: token } = await world.login('zoe')
  await run(bin('schemathesis'), probe)
  // Reads only: what ends sessions or disables people would end the run.
  await run(bin('schemathesis'), [...probe, '--include-method', 'GET', '-H', `Authorization: Bearer ${token}`])
} finally {
  await world.stop()
  rmSync(scratch, { recursive: true, force: true })
}
