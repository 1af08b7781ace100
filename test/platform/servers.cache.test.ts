import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { cacheDir, ROOT, signalboxDir } from '../../apps/platform/base/paths.ts'
import { download } from '../../apps/platform/servers/cache.ts'

let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'signalbox-cache-'))
  vi.stubEnv('SIGNALBOX_CACHE', join(home, 'cache'))
})
afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(home, { recursive: true, force: true })
})
const fetching = (url: string) =>
  download(join(home, 'program'), { url, sha256: 'none', member: 'program' }).run(() => {})

it('a download goes through the proxy of the environment', async () => {
  const asked: string[] = []
  const proxy = createServer((req, res) => {
    asked.push(String(req.url))
    res.writeHead(404).end()
  })
  proxy.on('connect', (req, socket) => {
    asked.push(String(req.url))
    socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n')
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  const address = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
  for (const name of ['HTTPS_PROXY', 'https_proxy']) vi.stubEnv(name, address)
  await expect(fetching('https://releases.example/program.tar.gz')).rejects.toThrow()
  proxy.close()
  expect(asked).toEqual(['releases.example:443'])
})

it('a cache that cannot be written names the setting that moves it', async () => {
  writeFileSync(join(home, 'file'), '')
  vi.stubEnv('SIGNALBOX_CACHE', join(home, 'file/cache'))
  await expect(fetching('http://127.0.0.1:9/')).rejects.toThrow(/ENOTDIR.*set SIGNALBOX_CACHE to another folder/)
})

it('scratch folders of a killed process are removed after a day', async () => {
  const [old, young] = ['.making-old', '.making-young'].map((name) => join(home, 'cache', name)) as [string, string]
  for (const folder of [old, young]) mkdirSync(folder, { recursive: true })
  utimesSync(old, new Date(0), new Date(0))
  await expect(fetching('http://127.0.0.1:9/')).rejects.toThrow()
  expect([old, young].map((folder) => existsSync(folder))).toEqual([false, true])
})

it('a copied folder is readable for every account, whatever the umask', () => {
  mkdirSync(join(home, 'from/bin'), { recursive: true })
  writeFileSync(join(home, 'from/bin/program'), '', { mode: 0o700 })
  writeFileSync(join(home, 'from/file'), '', { mode: 0o600 })
  const program = `
    process.umask(0o077)
    const { copyFolder } = await import('${pathToFileURL(join(ROOT, 'apps/platform/servers/cache.ts')).href}')
    copyFolder('${join(home, 'from')}', '${join(home, 'to')}')
  `
  const { stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' })
  const modes = ['to', 'to/bin', 'to/bin/program', 'to/file'].map((name) => statSync(join(home, name)).mode & 0o777)
  expect(modes, stderr).toEqual([0o755, 0o755, 0o755, 0o644])
})

it('a folder of the environment may be relative or empty, and an account may have no home', () => {
  vi.stubEnv('SIGNALBOX_DIR', 'data')
  vi.stubEnv('SIGNALBOX_CACHE', 'cache')
  expect([signalboxDir(), cacheDir()]).toEqual([join(process.cwd(), 'data'), join(process.cwd(), 'cache')])
  for (const name of ['SIGNALBOX_DIR', 'SIGNALBOX_CACHE', 'XDG_CACHE_HOME', 'HOME']) vi.stubEnv(name, '')
  expect([signalboxDir(), cacheDir()]).toEqual([join(ROOT, '.signalbox'), join(ROOT, '.signalbox/cache')])
})
