import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { cacheDir } from '../../../apps/platform/base/paths.ts'
import { createPorts } from '../../../apps/platform/base/ports.ts'
import { which } from '../../../apps/platform/servers/sources.ts'
import { until } from '../../support/until.ts'

/** A real registry of the OCI distribution API, built once from the module proxy. */
const VERSION = '0.20.3'
const MODULE = 'github.com/google/go-containerregistry'

const buildRegistry = (): string => {
  const target = join(cacheDir(), `crane-${VERSION}`)
  if (existsSync(target)) return target
  if (!which('go')) throw new Error('The tests of registries build one: put Go 1.23 or newer on PATH.')
  const dir = `${target}.making-${process.pid}`
  mkdirSync(dir, { recursive: true })
  try {
    const env = { ...process.env, CGO_ENABLED: '0', GOFLAGS: '-mod=mod' }
    const go = (...args: string[]) => execFileSync('go', args, { cwd: dir, stdio: 'pipe', env })
    go('mod', 'init', 'registry')
    go('get', `${MODULE}/cmd/crane@v${VERSION}`)
    go('build', '-o', 'made', `${MODULE}/cmd/crane`)
    renameSync(join(dir, 'made'), target)
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
  return target
}

export const startRegistry = async () => {
  const host = `127.0.0.1:${await createPorts().take('registry', 0)}`
  const child = spawn(buildRegistry(), ['registry', 'serve', '--address', host], { stdio: 'ignore' })
  await until(() => fetch(`http://${host}/v2/`).then(({ ok }) => ok), { timeout_ms: 30_000, what: 'the registry' })
  const put = async (path: string, type: string, bytes: Buffer) => {
    const answer = await fetch(`http://${host}/v2/${path}`, {
      method: 'PUT',
      headers: { 'content-type': type },
      body: new Uint8Array(bytes),
    })
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
  }
  return {
    host,
    pushBlob: async (name: string, bytes: Buffer, digest: string) => {
      const begun = await fetch(`http://${host}/v2/${name}/blobs/uploads/`, { method: 'POST' })
      const location = new URL(begun.headers.get('location') ?? '', `http://${host}`)
      await put(`${location.pathname.replace('/v2/', '')}?digest=${digest}`, 'application/octet-stream', bytes)
    },
    pushManifest: (name: string, digest: string, manifest: Buffer) =>
      put(`${name}/manifests/${digest}`, 'application/vnd.oci.image.manifest.v1+json', manifest),
    stop: async () => {
      child.kill('SIGKILL')
      await once(child, 'exit')
    },
  }
}
