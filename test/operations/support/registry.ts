import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { basename, join } from 'node:path'
import { cacheDir } from '../../../apps/platform/base/paths.ts'
import { createPorts } from '../../../apps/platform/base/ports.ts'
import { which } from '../../../apps/platform/servers/sources.ts'
import { until } from '../../support/until.ts'

/** Programs that are built once from the module proxy: a registry of the OCI distribution API, and its usual client. */
const CRANE = { module: 'github.com/google/go-containerregistry', program: 'cmd/crane', version: '0.20.3' }
const ORAS = { module: 'oras.land/oras', program: 'cmd/oras', version: '1.2.3' }

const built = ({ module, program, version }: typeof CRANE): string => {
  const target = join(cacheDir(), `${basename(program)}-${version}`)
  if (existsSync(target)) return target
  if (!which('go')) throw new Error('The tests of registries build programs: put Go 1.23 or newer on PATH.')
  const dir = `${target}.making-${process.pid}`
  mkdirSync(dir, { recursive: true })
  try {
    const env = { ...process.env, CGO_ENABLED: '0', GOFLAGS: '-mod=mod' }
    const go = (...args: string[]) => execFileSync('go', args, { cwd: dir, stdio: 'pipe', env })
    go('mod', 'init', 'registry')
    go('get', `${module}/${program}@v${version}`)
    go('build', '-o', 'made', `${module}/${program}`)
    renameSync(join(dir, 'made'), target)
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
  return target
}

/** Puts the client into a folder, under its name. */
export const linkClient = (folder: string): void => symlinkSync(built(ORAS), join(folder, 'oras'))

export const startRegistry = async () => {
  const host = `127.0.0.1:${await createPorts().take('registry', 0)}`
  const child = spawn(built(CRANE), ['registry', 'serve', '--address', host], { stdio: 'ignore' })
  await until(() => fetch(`http://${host}/v2/`).then(({ ok }) => ok), { what: 'the registry' })
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
