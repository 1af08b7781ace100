import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { Header } from 'tar'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { startBackground } from '../../apps/operations/background.ts'
import { loadOperationsConfig } from '../../apps/operations/config.ts'
import { loadLibrary } from '../../apps/operations/packs/library.ts'
import { openPackages } from '../../apps/operations/packs/packages.ts'
import { ROOT } from '../../apps/platform/base/paths.ts'
import { initPack } from '../../apps/platform/packs/main.ts'
import { createAuthority } from '../support/certificates.ts'
import { until } from '../support/until.ts'
import { must, startPlatform } from './support/platform.ts'
import { linkClient, startRegistry } from './support/registry.ts'

/** Packs from a real registry, pulled by the digest of their manifest. */
const scratch = mkdtempSync(join(tmpdir(), 'signalbox-registry-'))
let registry: Awaited<ReturnType<typeof startRegistry>>
beforeAll(async () => {
  registry = await startRegistry()
}, 300_000)
afterAll(async () => {
  await registry.stop()
  rmSync(scratch, { recursive: true, force: true })
})

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
const PACK = `format: signalbox/pack@1
pack: greet
version: 4.0.0
title: Greet
owners: [netops]
procedures:
  - { key: greet, kind: runbook, title: Greet, scope: plan, steps: [{ id: greet, executor: noop }] }
`
const archive = (): Buffer => {
  const header = Buffer.alloc(512)
  const size = Buffer.byteLength(PACK)
  new Header({ path: 'package/pack.yaml', type: 'File', size, mode: 0o644, mtime: new Date(0) }).encode(header)
  return gzipSync(Buffer.concat([header, Buffer.from(PACK), Buffer.alloc(((512 - (size % 512)) % 512) + 1024)]))
}
type Layer = { mediaType: string; digest: string; size: number }
const layerOf = (bytes: Buffer, more: Partial<Layer> = {}): Layer => ({
  ...{
    mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip',
    digest: `sha256:${sha256(bytes)}`,
    size: bytes.length,
  },
  ...more,
})
/** Pushes an artifact with these layers; returns its place and digest, pinned as a setting names them. */
const push = async (name: string, layers: Layer[], blob = archive()) => {
  const config = Buffer.from('{}')
  for (const bytes of [config, blob]) await registry.pushBlob(name, bytes, `sha256:${sha256(bytes)}`)
  const manifest = Buffer.from(
    JSON.stringify({
      ...{ schemaVersion: 2, mediaType: 'application/vnd.oci.image.manifest.v1+json', layers },
      config: layerOf(config, { mediaType: 'application/vnd.oci.empty.v1+json' }),
    }),
  )
  await registry.pushManifest(name, `sha256:${sha256(manifest)}`, manifest)
  return `oci+http://${registry.host}/${name}@sha256:${sha256(manifest)}`
}
const packsOf = async (pinned: string, credentials_file?: string) => {
  const { dirs, close } = await openPackages([pinned], { credentials_file })
  const { packs } = loadLibrary({ packs_dirs: dirs })
  close()
  return packs.map(({ pack, version }) => `${pack}@${version}`)
}

it('is pulled by its digest, which the setting accepts', async () => {
  const pinned = await push('packs/greet', [layerOf(archive())])
  expect(await packsOf(pinned)).toContain('greet@4.0.0')
  const env = { ...process.env, OPERATIONS__PACKS__PACKAGES: JSON.stringify([pinned.replace('+http', '')]) }
  const others = /OPERATIONS__PACKS__PACKAGES/
  expect(String(catchOf(() => loadOperationsConfig(env)) ?? '')).not.toMatch(others)
  const tagged = { ...env, OPERATIONS__PACKS__PACKAGES: '["oci://registry.example/packs/greet:4.0.0"]' }
  expect(String(catchOf(() => loadOperationsConfig(tagged)))).toMatch(others)
})
it('is pushed as the guide says, and the setting that the guide prints loads it', async () => {
  const guide = readFileSync(join(ROOT, 'apps/operations/packs/README.md'), 'utf8')
  const [, block = ''] = /```sh\n(cd network[\s\S]*?)```/.exec(guide) ?? []
  initPack(join(scratch, 'network'), 'http')
  linkClient(scratch)
  // The client uses no TLS for this name.
  const host = registry.host.replace('127.0.0.1', 'localhost')
  const env = { ...process.env, PATH: `${scratch}:${process.env.PATH}`, DOCKER_CONFIG: scratch }
  const typed = block.replaceAll('registry.example', host)
  const said = execFileSync('bash', ['-euo', 'pipefail', '-c', typed], { cwd: scratch, env, encoding: 'utf8' })
  const [, setting = '[]'] = /OPERATIONS__PACKS__PACKAGES=(.*)/.exec(said) ?? []
  const [pinned = ''] = JSON.parse(setting) as string[]
  expect(await packsOf(pinned.replace('oci:', 'oci+http:'))).toContain('network@0.1.0')
}, 600_000)

const catchOf = (act: () => unknown): unknown => {
  try {
    act()
    return undefined
  } catch (error) {
    return error
  }
}

it('stops the start with a reason if it is missing, different, or not an archive', async () => {
  const absent = `oci+http://${registry.host}/packs/none@sha256:${'0'.repeat(64)}`
  await expect(openPackages([absent])).rejects.toThrow(/answered 404 for packs\/none/)
  const two = await push('packs/two', [layerOf(archive()), layerOf(archive())])
  await expect(openPackages([two])).rejects.toThrow(/has 2 layers instead of one/)
  const other = Buffer.from('no archive')
  const wrong = await push('packs/wrong', [layerOf(other)], other)
  await expect(openPackages([wrong])).rejects.toThrow(/the package is refused/)
})

/** A proxy to the registry that alters bytes and asks for credentials. */
const startWay = async (alter: (url: string, bytes: Buffer) => Buffer, credentials?: string) => {
  const asked: string[] = []
  let away = false
  const server = createServer(async (req, res) => {
    if (away) return void req.socket.destroy()
    const { authorization } = req.headers
    asked.push(`${req.url} ${authorization ?? ''}`)
    if (req.url?.startsWith('/token')) {
      if (authorization !== credentials) return res.writeHead(401).end()
      return res.end(JSON.stringify({ token: 'for-one-pull' }))
    }
    if (credentials && authorization !== 'Bearer for-one-pull') {
      const realm = `Bearer realm="http://${req.headers.host}/token",service="registry",scope="repository:packs/greet:pull"`
      return res.writeHead(401, { 'www-authenticate': realm }).end()
    }
    const answer = await fetch(`http://${registry.host}${req.url}`, { headers: { accept: req.headers.accept ?? '' } })
    res.writeHead(answer.status).end(alter(req.url ?? '', Buffer.from(await answer.arrayBuffer())))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const stop = () => {
    server.close()
    server.closeAllConnections()
  }
  /** Away, it keeps its port, which another test could take, but drops each connection. */
  const be = (where: 'away' | 'back') => {
    away = where === 'away'
  }
  return { asked, host, be, through: (pinned: string) => pinned.replace(registry.host, host), stop }
}

it('verifies each byte: an altered manifest and an altered layer are refused', async () => {
  const pinned = await push('packs/greet', [layerOf(archive())])
  for (const part of ['manifests', 'blobs']) {
    const alter = (url: string, bytes: Buffer) => {
      if (url.includes(part)) bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1
      return bytes
    }
    const way = await startWay(alter)
    const what = part === 'blobs' ? 'layer' : 'manifest'
    await expect(openPackages([way.through(pinned)])).rejects.toThrow(
      new RegExp(`the ${what} has the digest sha256:\\w{64}, not the pinned sha256`),
    )
    way.stop()
  }
})

it('is pulled with the credentials of docker login, by the token that the registry requires', async () => {
  const pinned = await push('packs/greet', [layerOf(archive())])
  const basic = Buffer.from('robot:s3cret').toString('base64')
  const way = await startWay((_, bytes) => bytes, `Basic ${basic}`)
  const file = join(scratch, 'docker.json')
  writeFileSync(file, JSON.stringify({ auths: { [way.host]: { auth: basic }, other: { auth: 'x' } } }))
  expect(await packsOf(way.through(pinned), file)).toContain('greet@4.0.0')
  expect(way.asked.some((line) => line.includes('scope=repository%3Apacks%2Fgreet%3Apull'))).toBe(true)
  const unknown = (words: RegExp, given?: object) => {
    if (given) writeFileSync(file, JSON.stringify(given))
    return expect(openPackages([way.through(pinned)], { credentials_file: given && file })).rejects.toThrow(words)
  }
  await unknown(/issued no token: 401; no credentials were given \(fetch\)\. .*OPERATIONS__PACKS__REGISTRY_FILE/)
  // docker login keeps them in a store of its own, and leaves an empty entry.
  await unknown(/401; .*docker\.json has no credentials for 127/, { auths: { [way.host]: {} }, credsStore: 'desktop' })
  await unknown(/401; it refused the credentials of .*docker\.json/, { auths: { [way.host]: { auth: 'eDp5' } } })
  way.stop()
})

it('over TLS, the credentials never go to a token server without it', async () => {
  const asked: (string | undefined)[] = []
  const tokens = createServer((req, res) => {
    asked.push(req.headers.authorization)
    res.end('{"token": "one"}')
  }).listen(0, '127.0.0.1')
  const { cert, key } = createAuthority().issue('localhost')
  const secure = createSecureServer({ cert, key }, (_, res) => {
    const realm = `Bearer realm="http://127.0.0.1:${(tokens.address() as AddressInfo).port}/token"`
    res.writeHead(401, { 'www-authenticate': realm }).end()
  }).listen(0, '127.0.0.1')
  await Promise.all([tokens, secure].map((server) => server.listening || once(server, 'listening')))
  const host = `127.0.0.1:${(secure.address() as AddressInfo).port}`
  const file = join(scratch, 'secure.json')
  writeFileSync(file, JSON.stringify({ auths: { [host]: { auth: 'eDp5' } } }))
  vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0')
  const pinned = `oci://${host}/packs/greet@sha256:${'0'.repeat(64)}`
  await expect(openPackages([pinned], { credentials_file: file })).rejects.toThrow(/issues tokens without TLS/)
  vi.unstubAllEnvs()
  expect(asked).toEqual([])
  for (const server of [tokens, secure]) server.close()
})

it('that is away delays plans alone: the app starts, says so, and uses the pack as soon as the registry answers', async () => {
  const pinned = await push('packs/late', [layerOf(archive())])
  const way = await startWay((_, bytes) => bytes)
  way.be('away')
  const place = way.through(pinned)
  const p = await startPlatform({ env: { OPERATIONS__PACKS__PACKAGES: JSON.stringify([place]) } })
  const [first] = p.running
  if (!first) throw new Error('no instance')
  const background = startBackground(first.deps)
  const health = async () => (await fetch(`${first.internal_url}/health/ready`)).json()
  const runbook = { pack: 'greet', procedure: 'greet' }
  const intent = { kind: 'runbook', title: 'greet', reason: 'a test', targets: [], runbook }
  try {
    const other = {
      ...intent,
      kind: 'graph',
      runbook: undefined,
      graph: { nodes: [{ node_id: 'one', executor: 'noop' }] },
    }
    const { intent_id } = must(await p.as('olga').post('/v1/intents', other), 201).body
    const preview = () => p.as('olga').post(`/v1/intents/${intent_id}/plan-preview`, {})
    const why = /packs\/late: the package cannot be read: /
    expect((await p.as('olga').post('/v1/intents', intent)).body.detail).toMatch(why)
    expect(await preview()).toMatchObject({ status: 503, body: { detail: expect.stringMatching(why) } })
    expect(await health()).toMatchObject({
      status: 'degraded',
      checks: { packs: { ok: false, detail: expect.stringMatching(why) } },
    })
    way.be('back')
    await until(async () => (await preview()).status === 201, { what: 'a plan' })
    expect(await health()).toMatchObject({ status: 'ready', checks: { packs: { ok: true } } })
    expect(must(await p.as('olga').get('/v1/packs'), 200).body.items).toContainEqual(
      expect.objectContaining({ pack: 'greet', version: '4.0.0', status: 'current' }),
    )
  } finally {
    way.stop()
    await background.stop()
    await p.stop()
  }
}, 90_000)

it('is not asked for a package that was loaded once; kept bytes that were altered are fetched again', async () => {
  const pinned = await push('packs/kept', [layerOf(archive())])
  const kept = join(scratch, 'kept')
  const way = await startWay((_, bytes) => bytes)
  const load = () => openPackages([way.through(pinned)], { kept })
  const away = async () => {
    const { away, close } = await load()
    close()
    return away
  }
  expect(await away()).toEqual([])
  expect(way.asked).toHaveLength(2)
  expect(await away()).toEqual([])
  expect(way.asked).toHaveLength(2)
  const [file = ''] = readdirSync(kept)
  writeFileSync(join(kept, file), 'altered')
  expect(await away()).toEqual([])
  expect(way.asked).toHaveLength(3)
  way.stop()
  expect(await away()).toEqual([])
  rmSync(kept, { recursive: true })
  expect(await away()).toEqual([expect.stringMatching(/packs\/kept: the package cannot be read/)])
})
