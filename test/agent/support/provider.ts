import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cacheDir } from '../../../apps/platform/base/paths.ts'
import { which } from '../../../apps/platform/servers/sources.ts'

/** A real provider of local files, in its own mirror. */
const VERSION = '1.4.0'
const MODULE = 'github.com/terraform-providers/terraform-provider-local'

/** Built once from the module proxy, so no provider registry is needed. */
const buildProvider = (): string => {
  const target = join(cacheDir(), `terraform-provider-local_v${VERSION}`)
  if (existsSync(target)) return target
  if (!which('go')) throw new Error('The tests of drift build a provider: put Go 1.23 or newer on PATH.')
  const dir = `${target}.making-${process.pid}`
  mkdirSync(dir, { recursive: true })
  try {
    const go = (...args: string[]) =>
      execFileSync('go', args, {
        cwd: dir,
        stdio: 'pipe',
        env: { ...process.env, CGO_ENABLED: '0', GOFLAGS: '-mod=mod' },
      })
    go('mod', 'init', 'provider')
    go('get', `${MODULE}@v${VERSION}`)
    go('build', '-o', 'made', MODULE)
    renameSync(join(dir, 'made'), target)
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
  return target
}

/** Mirrors the provider in a folder, and writes the lock file of a source that uses it. */
export const mirrorProvider = (program: string, folder: string, source: string) => {
  const providers = join(folder, 'providers')
  const host = /tofu/i.test(execFileSync(program, ['version'], { encoding: 'utf8' }))
    ? 'registry.opentofu.org'
    : 'registry.terraform.io'
  const platform = `${process.platform}_${process.arch === 'x64' ? 'amd64' : process.arch}`
  const place = join(providers, host, 'hashicorp/local', VERSION, platform)
  mkdirSync(place, { recursive: true })
  const mirrored = join(place, `terraform-provider-local_v${VERSION}`)
  copyFileSync(buildProvider(), mirrored)
  chmodSync(mirrored, 0o755)
  const rc = join(folder, 'tofurc')
  writeFileSync(rc, `provider_installation {\n  filesystem_mirror {\n    path = "${providers}"\n  }\n}\n`)
  const env = { ...process.env, TF_CLI_CONFIG_FILE: rc, CHECKPOINT_DISABLE: '1' }
  execFileSync(program, ['init', '-no-color', '-input=false'], { cwd: source, env, stdio: 'pipe' })
  rmSync(join(source, '.terraform'), { recursive: true, force: true })
  return { providers, mirrored }
}
