import { spawn } from 'node:child_process'
import { copyFileSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ROOT } from '../../../apps/platform/base/paths.ts'
import { PUBLIC_DOCUMENT } from '../../../apps/platform/check/openapi/files.ts'
import { ROLES, startOperation, startWorld } from '../world.ts'

/**
 * The document in the hands of other tools, against a started platform: a generated Python client and our packed one
 * are used, and schemathesis sends what the document allows. `npm run test:clients` starts it with the tools in
 * PYTHON_BIN; without them, only our packed client is tested.
 */
const quick = process.env.CLIENTS_QUICK === 'true'
const bin = (name: string) => join(process.env.PYTHON_BIN ?? '', name)
const CONFIG = 'project_name_override: signalbox\npackage_name_override: signalbox_client\npost_hooks: []\n'

type Where = { env?: Record<string, string>; cwd?: string }
const run = (program: string, args: string[], { env = {}, cwd }: Where = {}): Promise<void> =>
  new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: 'inherit', env: { ...process.env, ...env }, ...(cwd && { cwd }) })
    child.on('error', reject)
    child.on('exit', (code) => (code === 0 ? resolve() : reject(new Error(`${program} ended with ${code}`))))
  })

/** Our own client from its tarball: checked by TypeScript and run, in an otherwise empty folder. */
const provePacked = async (env: Record<string, string>): Promise<void> => {
  const cwd = mkdtempSync(join(tmpdir(), 'signalbox-packed-'))
  try {
    // `prepack` builds it; the root's settings, which `npm run` passes on, would skip that.
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

/** A Python client, generated from the document and used by client.py. */
const provePython = async (scratch: string, env: Record<string, string>): Promise<void> => {
  const config = join(scratch, 'config.yml')
  writeFileSync(config, CONFIG)
  const output = ['--meta', 'none', '--output-path', join(scratch, 'signalbox_client')]
  const generate = ['generate', '--path', PUBLIC_DOCUMENT, '--config', config, ...output, '--fail-on-warning']
  await run(bin('openapi-python-client'), generate)
  await run(bin('python'), [fileURLToPath(new URL('client.py', import.meta.url))], {
    env: { ...env, CLIENT_DIR: scratch },
  })
}

const CHECKS = 'not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance'

/**
 * Not sent with a token: requests that end the sender's session or disable the sender, and previews, which answer an
 * invented watermark with 503 until the catalog gets there.
 */
const LEFT_OUT = '^/(auth|v1)/|/sessions|/users/|/admin/|/plan-preview$'

/** Sends what the document allows: without a token to every endpoint, with one to most. Quick: only the reads' examples. */
const proveAnswers = async (cwd: string, url: string, token: () => Promise<string>): Promise<void> => {
  const phases = quick ? 'examples' : 'examples,fuzzing'
  const limits = ['--max-examples', process.env.EXAMPLES ?? '10', '--exclude-tag', 'events', '--request-timeout', '10']
  const probe = ['run', PUBLIC_DOCUMENT, '--url', url, '--checks', CHECKS, '--phases', phases, ...limits, '--no-color']
  if (!quick) await run(bin('schemathesis'), probe, { cwd })
  const signedIn = [...probe, '-H', `Authorization: Bearer ${await token()}`]
  await run(
    bin('schemathesis'),
    [...signedIn, ...(quick ? ['--include-method', 'GET'] : ['--exclude-path-regex', LEFT_OUT])],
    { cwd },
  )
}

const scratch = mkdtempSync(join(tmpdir(), 'signalbox-python-'))
const world = await startWorld({
  apps: ['token', 'credential', 'identity', 'session', 'catalog', 'operations', 'worker', 'relay', 'gateway'],
})
try {
  await world.addUser('zoe', ROLES)
  const token = async () => (await world.login('zoe')).access_token
  const url = world.stack.gateway_url
  /** For a client that needs its own gate. */
  const given = async () => {
    const { operation_id } = await startOperation(world, await token())
    return { SIGNALBOX_URL: url, PASSWORD: world.password, OPERATION_ID: operation_id }
  }
  await provePacked(await given())
  if (process.env.PYTHON_BIN) {
    await provePython(scratch, await given())
    await proveAnswers(scratch, url, token)
  }
} finally {
  await world.stop()
  rmSync(scratch, { recursive: true, force: true })
}
