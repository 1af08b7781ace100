import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { cacheDir } from '../../apps/platform/base/paths.ts'
import { createScreen } from '../../apps/platform/base/screen.ts'
import { run } from '../../apps/platform/servers/sources.ts'
import { prove } from './prove.ts'

/**
 * `npm run test:keycloak`: sign-in through a real Keycloak. Needs Java 17, Maven and unzip: Maven fetches Keycloak
 * once, into the cache. `npm test` runs the same test with a small provider of our own.
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

await prove(screen, 'keycloak', 'test/keycloak/main.ts', async () => ({
  KEYCLOAK_HOME: await keycloakHome(),
  UV_THREADPOOL_SIZE: '14',
}))
