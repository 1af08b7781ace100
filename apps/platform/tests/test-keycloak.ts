import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { cacheDir, QUICK_IMPORTS, ROOT } from '../base/paths.ts'
import { createScreen } from '../base/screen.ts'
import { run } from '../servers/sources.ts'
import { FAST_POSTGRES, withTestServers } from './test-servers.ts'

/**
 * `npm run test:keycloak`: sign-in through a real Keycloak. Needs Java 17, Maven and unzip: Maven brings Keycloak once,
 * into the cache. `npm test` holds the same proof with a small provider of our own.
 */
const VERSION = '26.7.3'
const ARTIFACT = `org.keycloak:keycloak-quarkus-dist:${VERSION}:zip`
const COPY = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy'
const BRING_MS = 900_000

const screen = createScreen()

const keycloakHome = async (): Promise<string> => {
  const home = join(cacheDir(), `keycloak-${VERSION}`)
  if (existsSync(home)) return home
  screen.line('keycloak', `fetching ${ARTIFACT}`)
  const making = `${home}.making`
  rmSync(making, { recursive: true, force: true })
  mkdirSync(making, { recursive: true })
  const options = [`-Dartifact=${ARTIFACT}`, `-DoutputDirectory=${making}`, '-Dmdep.stripVersion=true']
  await run('mvn', ['-q', '-B', COPY, ...options], { timeout_ms: BRING_MS, cwd: making })
  await run('unzip', ['-q', 'keycloak-quarkus-dist.zip'], { timeout_ms: BRING_MS, cwd: making })
  renameSync(join(making, `keycloak-${VERSION}`), home)
  rmSync(making, { recursive: true, force: true })
  return home
}

const prove = (env: NodeJS.ProcessEnv): Promise<number> =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, [join(ROOT, 'test/keycloak/main.ts')], {
      cwd: ROOT,
      stdio: ['ignore', 'inherit', 'inherit'],
      env: { ...process.env, SIGNALBOX_LOG_LEVEL: 'silent', UV_THREADPOOL_SIZE: '14', ...env },
    })
    child.on('exit', (code) => resolve(code ?? 1))
  })

const code = await keycloakHome()
  .then((home) =>
    withTestServers(
      screen,
      (env) => prove({ ...env, NODE_ENV: 'test', NODE_OPTIONS: `--import=${QUICK_IMPORTS}`, KEYCLOAK_HOME: home }),
      FAST_POSTGRES,
    ),
  )
  .catch((error: Error) => {
    screen.line('keycloak', error.message, 'red')
    return 1
  })
screen.line('keycloak', code === 0 ? 'proved' : 'failed', code === 0 ? 'green' : 'red')
process.exitCode = code
