import { spawn } from 'node:child_process'
import { copyFileSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ROOT } from '../../../apps/platform/base/paths.ts'
import { PUBLIC_DOCUMENT } from '../../../apps/platform/check/openapi/files.ts'
import { ROLES, startOperation, startWorld } from '../world.ts'

/**
 * The document in the hands of other tools, against a started platform: a generated Python client and our packed one are
 * used, and schemathesis sends what the document allows. `npm run test:clients` starts it with the tools in PYTHON_BIN.
 */
const bin = (name: string) => join(process.env.PYTHON_BIN ?? '', name)
const CONFIG = 'project_name_override: signalbox\npackage_name_override: signalbox_client\npost_hooks: []\n'

type Where = { env?: Record<string, string>; cwd?: string }
const run = (program: string, args: string[], { env = {}, cwd }: Where = {}): Promise<void> =>
  new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: 'inherit', env: { ...process.env, ...env }, ...(cwd && { cwd }) })
    child.on('error', reject)
    child.on('exit', (code) => (code === 0 ? resolve() : reject(new Error(`${program} ended with ${code}`))))
  })

/** Our own client from its tarball: checked by TypeScript and run, in a folder that has nothing else. */
const provePacked = async (env: Record<string, string>): Promise<void> => {
  const cwd = mkdtempSync(join(tmpdir(), 'signalbox-packed-'))
  try {
    // `prepack` builds it; the settings of the root, which `npm run` hands on, would leave that out.
    const pack = ['pack', '--silent', '--ignore-scripts=false', '--pack-destination', cwd]
    await run('npm', pack, { cwd: join(ROOT, 'apps/client') })
    const tarball = readdirSync(cwd).find((name) => name.endsWith('.tgz'))
    await run('npm', ['install', '--no-audit', '--no-fund', '--silent', `./${tarball}`], { cwd })
    copyFileSync(new URL('../packed/client.mjs', import.meta.url), join(cwd, 'client.mjs'))
    symlinkSync(join(ROOT, 'node_modules/@types'), join(cwd, 'node_modules/@types'))
    const check = ['--noEmit', '--strict', '--checkJs', '--module', 'nodenext', '--target', 'es2024', '--types', 'node']
    await run(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), ...check, 'client.mjs'], { cwd })
    await run(process.execPath, ['client.mjs'], { cwd, env: { ...env, NODE_OPTIONS: '' } })
  } finally {
    for (const made of [cwd, join(ROOT, 'apps/client/dist')]) rmSync(made, { recursive: true, force: true })
  }
}

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
  const known = { SIGNALBOX_URL: url, PASSWORD: world.password }
  await run(bin('python'), [fileURLToPath(new URL('client.py', import.meta.url))], {
    env: { ...known, CLIENT_DIR: scratch, OPERATION_ID: operation_id },
  })
  const other = await startOperation(world, (await world.login('zoe')).access_token)
  await provePacked({ ...known, OPERATION_ID: other.operation_id })

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
  await run(bin('schemathesis'), probe, { cwd: scratch })
  // Reads only: what ends sessions or disables people would end the run.
  await run(bin('schemathesis'), [...probe, '--include-method', 'GET', '-H', `Authorization: Bearer ${token}`], {
    cwd: scratch,
  })
} finally {
  await world.stop()
  rmSync(scratch, { recursive: true, force: true })
}
