import { createHash } from 'node:crypto'
import { readFileSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { createInstallation, filesBelow, ORIGIN } from './support/installation.ts'

/** Real processes, on a machine that may be busy. */
vi.setConfig({ testTimeout: 120_000 })

const { home, out, setUp, verb, edit } = createInstallation()
afterAll(() => rmSync(home, { recursive: true, force: true }))

const digests = () =>
  filesBelow(out)
    .sort()
    .map((file) => `${file} ${createHash('sha256').update(readFileSync(file)).digest('hex')}`)
const envText = () =>
  filesBelow(`${out}/env`)
    .map((file) => readFileSync(file, 'utf8'))
    .join()

describe('the set-up of production', () => {
  it('marks unknown addresses, and fills them in later', async () => {
    expect((await setUp('--hosts', '127.0.0.1')).text).toContain('--postgres --redis --nats --temporal')
    const made = await setUp(
      ...['--hosts', '127.0.0.1', '--postgres', 'postgres://db.example:5432', '--redis', 'rediss://redis.example:6379'],
      ...['--nats', 'tls://nats.example:4222', '--temporal', 'temporal.example:7233'],
    )
    expect(made).toMatchObject({ status: 0 })
    expect(envText()).not.toContain('TO_FILL')
    expect(envText()).toContain(`@db.example:5432/signalbox?sslmode=verify-full&sslrootcert=${out}/tls/ca.pem`)
    expect(envText()).toContain('RELAY__TEMPORAL__ADDRESS=tls://temporal.example:7233')
    // An older Node, from which the npm commands switch over, cannot run these files.
    const next = readFileSync(`${out}/NEXT.md`, 'utf8')
    expect(next.split('apps/<app>/main.ts')[0]).toContain(`export PATH=${dirname(process.execPath)}:$PATH`)
    expect(next.split('apps/<app>/main.ts')[1]).not.toMatch(/\.ts\b/)
  })

  it('writes once: a second run changes no byte, whatever was edited by hand', async () => {
    edit('env/gateway.env', (text) => text.replace(/PORT=\d+/, 'PORT=1'))
    const before = digests()
    expect((await setUp('--hosts', '127.0.0.1')).status).toBe(0)
    const kept = (lines: string[]) => lines.filter((line) => !line.includes('NEXT.md'))
    expect(kept(digests())).toEqual(kept(before))
    for (const file of filesBelow(out).filter((name) => !/tls\/.*\.pem$/.test(name)))
      expect([file, statSync(file).mode & 0o777]).toEqual([file, 0o600])
  })

  it.each([
    [['--out', home], 'The target of the set-up is missing'],
    [['production', '--origin', ORIGIN], '--out is missing'],
    [['production', '--out', home, '--origin', 'http://x'], '--origin must be an https origin'],
    [['production', '--out', home, '--origin', ORIGIN, '--format', 'helm'], '--format must be files or kubernetes'],
    [['production', '--out', home, '--origin', ORIGIN, '--ca', 'none.pem,none.key'], '--ca names two files'],
  ])('refuses %j', async (args, why) => {
    const { status, text } = await verb('deploy/setup', ...args)
    expect([status, text]).toEqual([2, expect.stringContaining(why)])
  })
})
