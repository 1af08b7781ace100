import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { Header } from 'tar'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { stringify } from 'yaml'
import { loadOperationsConfig } from '../../apps/operations/config.ts'
import { loadLibrary } from '../../apps/operations/packs/library.ts'
import { openPackages } from '../../apps/operations/packs/packages.ts'
import { recordLibrary } from '../../apps/operations/packs/record.ts'
import { ROOT } from '../../apps/platform/base/paths.ts'
import { until } from '../support/until.ts'
import { must, startPlatform } from './support/platform.ts'
import { startWorker } from './support/worker.ts'

/** Packs that come as packages: pinned by digest, kept inside their folder, and versioned. */
const scratch = mkdtempSync(join(tmpdir(), 'signalbox-packages-test-'))
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

const pinned = (path: string) => `${path}@sha256:${createHash('sha256').update(readFileSync(path)).digest('hex')}`

/** The archive of `npm pack`, pinned. */
const packageOf = (version: string, says: string, more: object = {}): string => {
  const dir = join(scratch, `greet-${version}-${says}`)
  mkdirSync(join(dir, 'gates'), { recursive: true })
  mkdirSync(join(dir, 'tests'))
  writeFileSync(join(dir, 'package.json'), JSON.stringify({ name: 'greet', version }))
  const step = { id: 'greet', executor: 'noop', with: { outputs: { word: says } }, outputs: { word: '/word' } }
  const gates = [{ policy: 'greeting', at: 'entry' }]
  const procedure = { key: 'greet', kind: 'runbook', title: 'Greet', scope: 'plan', gates, steps: [step] }
  const pack = { format: 'signalbox/pack@1', pack: 'greet', version, title: 'Greet', owners: ['netops'], ...more }
  writeFileSync(join(dir, 'pack.yaml'), stringify({ ...pack, procedures: [procedure] }))
  writeFileSync(
    join(dir, 'gates/greeting.yaml'),
    stringify({ format: 'signalbox/gate-policy@1', key: 'greeting', version: 1, question: 'Greet?' }),
  )
  writeFileSync(join(dir, 'tests/first.yaml'), 'this is read by authors alone: [')
  execFileSync('npm', ['pack', '--silent', '--pack-destination', dir], { cwd: dir, stdio: 'pipe' })
  return pinned(join(dir, `greet-${version}.tgz`))
}

it('an upgrade of a package leaves a running operation at the version of its plan', async () => {
  const p = await startPlatform({ packages: [[packageOf('1.0.0', 'hello')], [packageOf('1.1.0', 'welcome')]] })
  const worker = await startWorker(p, join(ROOT, 'activities/executors/policy.yaml'))
  try {
    for (const { deps } of p.running) await recordLibrary(deps.db, deps.library)
    const begin = async (instance: number) => {
      const runbook = { pack: 'greet', procedure: 'greet' }
      const intent = { kind: 'runbook', title: 'greet', reason: 'a test', targets: [], runbook }
      const { intent_id } = must(await p.as('olga').post('/v1/intents', intent, { instance }), 201).body
      const plan = must(await p.as('olga').post(`/v1/intents/${intent_id}/plan-preview`, {}, { instance }), 201).body
      const body = { reviewed_plan_hash: plan.plan_hash }
      const started = await p.as('olga').post(`/v1/plans/${plan.plan_id}/start`, body, { instance })
      expect([201, 202], started.text).toContain(started.status)
      return { path: `/v1/operations/${started.body.operation_id}`, packs: plan.packs }
    }
    const end = async (path: string) => {
      const gate = await until(async () => {
        const { items } = must(await p.as('eva').get(`${path}/gates`), 200).body
        return items.find(({ status }: { status: string }) => status === 'waiting')
      })
      const shown = must(await p.as('eva').get(`${path}/gates/${gate.gate_id}`), 200).body
      const vote = { reviewed_digest: shown.digest, round: shown.round }
      // The decision arrives at the instance that has the new version.
      const decided = await p.as('eva').post(`${path}/gates/${gate.gate_id}/approve`, vote, { instance: 1 })
      expect([200, 202], decided.text).toContain(decided.status)
      return until(async () => {
        const node = (await p.as('vic').get(`${path}/nodes/greet.greet`)).body
        return node.state === 'succeeded' ? node.outputs : undefined
      })
    }
    const old = await begin(0)
    const fresh = await begin(1)
    expect([old, fresh].map(({ packs: [pack] }) => `${pack.pack}@${pack.version}`)).toEqual([
      'greet@1.0.0',
      'greet@1.1.0',
    ])
    expect(await end(old.path)).toEqual({ word: 'hello' })
    expect(await end(fresh.path)).toEqual({ word: 'welcome' })
    const changed = await openPackages([packageOf('1.1.0', 'changed', { title: 'Other' })])
    const library = loadLibrary({ packs_dirs: changed.dirs })
    changed.close()
    await expect(recordLibrary(p.running[0]?.deps.db as never, library)).rejects.toThrow(
      /greet@1\.1\.0.*pack_version_reused/,
    )
  } finally {
    await worker.stop()
    await p.stop()
  }
}, 120_000)

describe('a package', () => {
  it('is read from a file or a URL, with only its own gate policies', async () => {
    const file = packageOf('2.0.0', 'hi')
    const bytes = readFileSync(file.replace(/@sha256.*/, ''))
    const server = createServer((_, reply) => void reply.end(bytes))
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    try {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/greet.tgz@${file.split('@')[1]}`
      for (const place of [file, url]) {
        const { dirs, close } = await openPackages([place])
        const { packs, policies } = loadLibrary({ packs_dirs: dirs })
        close()
        expect(packs.map(({ pack, version }) => `${pack}@${version}`)).toContain('greet@2.0.0')
        expect([...policies.keys()]).toContain('greeting')
      }
    } finally {
      server.close()
    }
  })

  it('with another digest, or missing, stops the start with the digests and the remedy', async () => {
    const file = packageOf('3.0.0', 'hi')
    await expect(openPackages([file.replace(/.$/, (last) => (last === '0' ? '1' : '0'))])).rejects.toThrow(
      /greet-3\.0\.0\.tgz: the package has the digest sha256:\w{64}, not the pinned sha256:\w{64} \(package\)\. Correct/,
    )
    await expect(openPackages([`/nowhere.tgz@sha256:${'0'.repeat(64)}`])).rejects.toThrow(
      /cannot be read: ENOENT.*\(fetch\)\./,
    )
    const wrong = { ...process.env, OPERATIONS__PACKS__PACKAGES: '["/srv/greet.tgz"]' }
    expect(() => loadOperationsConfig(wrong)).toThrow(/OPERATIONS__PACKS__PACKAGES/)
  })

  const entry = (path: string, type: string, body = '', linkpath = '') => {
    const header = Buffer.alloc(512)
    new Header({ path, type: type as never, size: body.length, mode: 0o644, mtime: new Date(0), linkpath }).encode(
      header,
    )
    return Buffer.concat([header, Buffer.from(body), Buffer.alloc((512 - (body.length % 512)) % 512)])
  }
  const cases: [string, () => Buffer[], RegExp][] = [
    [
      'a path with ..',
      () => [entry('package/../../evil.yaml', 'File', 'x')],
      /"package\/\.\.\/\.\.\/evil\.yaml" leads out of the package/,
    ],
    ['an absolute path', () => [entry('/etc/evil.yaml', 'File', 'x')], /leads out of the package/],
    [
      'a symbolic link',
      () => [entry('package/pack.yaml', 'SymbolicLink', '', '/etc/passwd')],
      /"package\/pack\.yaml" is a SymbolicLink/,
    ],
    ['a hard link', () => [entry('package/pack.yaml', 'Link', '', 'package/a')], /is a Link/],
    ['a device', () => [entry('package/pack.yaml', 'CharacterDevice')], /is a CharacterDevice/],
    [
      'more entries than allowed',
      () => Array.from({ length: 1001 }, (_, i) => entry(`package/${i}`, 'File')),
      /more than 1000 entries/,
    ],
    [
      'more bytes than allowed',
      () => [entry('package/a', 'File', 'x'.repeat(33 * 1024 * 1024))],
      /larger than|Cannot create/,
    ],
    ['no archive', () => [Buffer.from('neither an archive nor empty'.repeat(50))], /refused/],
  ]
  it.each(cases)('with %s is refused, and no file of it remains', async (name, parts, says) => {
    const path = join(scratch, `${name.replace(/\W/g, '-')}.tgz`)
    const own = mkdtempSync(join(scratch, 'tmp-'))
    vi.stubEnv('TMPDIR', own)
    writeFileSync(path, gzipSync(Buffer.concat([...parts(), Buffer.alloc(1024)])))
    await expect(openPackages([pinned(path)])).rejects.toThrow(says)
    expect(readdirSync(own)).toEqual([])
  })
})
