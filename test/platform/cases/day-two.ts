import { execFile } from 'node:child_process'
import {
  chownSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { Agent, request } from 'undici'
import { describe, expect, it } from 'vitest'
import { ROOT } from '../../../apps/platform/base/paths.ts'
import { silentScreen } from '../../../apps/platform/base/screen.ts'
import { type Account, dataFolder, postgresTls, unprivileged } from '../../../apps/platform/servers/postgres.ts'
import { locateTemporal } from '../../../apps/platform/servers/temporal.ts'
import { sha256Hex } from '../../../apps/shared/data/digest.ts'
import { withConnection } from '../../../db/connection.ts'
import { blocksOf, GUIDES, guideText } from '../../support/guides.ts'
import { until } from '../../support/until.ts'
import { type Installation, NAMES, type startInstallation } from '../support/installation.ts'

type Given = {
  made: Installation
  up: () => Awaited<ReturnType<typeof startInstallation>>
  typed: (block: string, env?: NodeJS.ProcessEnv, account?: Account) => Promise<string>
  doctor: () => Promise<{ status: number; text: string }>
  readings: () => Promise<(number | string)[][]>
  inImage: (app: string, args: string[], input?: string) => Promise<{ status: number; text: string }>
}
/** Each in its own describe, because something has to happen between their commands. */
const APART = ['backup.md', 'rotate.md', 'uninstall.md']

/** The guides' commands on an installation that has served; the last of them removes it. */
export const dayTwo = ({ made: { home, out }, up, typed, doctor, readings, inImage }: Given) => {
  const restart = async (apps = up().apps) => {
    await Promise.all(apps.map((app) => app.stop()))
    await Promise.all(apps.map((app) => app.start()))
  }
  /** Calls to an app that was away are refused for some seconds more, with Retry-After. */
  const serves = async () => {
    const refused = async () => (await readings()).filter(([, status]) => status !== 200)
    await until(async () => (await refused()).length === 0, { what: 'every app to answer' })
  }

  describe('a guide', () => {
    const blocks = GUIDES.filter((guide) => !APART.includes(guide)).flatMap((guide) =>
      blocksOf(guide, 'servers', 'all')
        .slice(guide === 'install.md' ? 1 : 0)
        .map((block): [string, string] => [guide, block]),
    )
    it.each(blocks)('%s: %s', async (_guide, block) => {
      expect(await typed(block, { PGDATA: dataFolder(home) })).not.toContain('Warning')
    })

    it('creates an administrator in a pod by a command that the files of the image can carry out', async () => {
      const [, app = '', command = ''] =
        /exec deployment\/signalbox-(\w+) -- \\\n\s*node (.*)/.exec(guideText('install.md')) ?? []
      // The first one exists, so it refuses; a wrong path, setting or right would fail before that.
      expect(await inImage(app, command.split(' '))).toEqual({
        status: 1,
        text: expect.stringContaining('an administrator'),
      })
    })

    it('copies the anchors out of a pod, and a line into it, by commands of the image', async () => {
      const scripts = [...guideText('restore.md').matchAll(/deployment\/signalbox-relay -- node -e \\\n\s*'(.+?)'/g)]
      const [out_of = '', into = ''] = scripts.map(([, script]) => script)
      const before = await inImage('relay', ['-e', out_of])
      expect([before.status, before.text]).toEqual([0, expect.stringMatching(/^\{.*\}\n$/s)])
      const last = `${before.text.trimEnd().split('\n').at(-1)}\n`
      expect(await inImage('relay', ['-e', into], last)).toEqual({ status: 0, text: '' })
      const after = await inImage('relay', ['-e', out_of])
      expect([after.text.startsWith(before.text), after.text.split(last).length]).toEqual([true, 3])
    })

    it('verifies no audit log without its anchors', async () => {
      const [verify = ''] = blocksOf('roll-back.md', 'servers')
      const away = typed(verify, { RELAY__AUDIT__ANCHOR_FILE: join(home, 'nowhere') })
      await expect(away).rejects.toThrow(/no anchor file .*nowhere/)
    })

    it('leaves a support bundle that the apps answered', async () => {
      await typed(blocksOf('uninstall.md', 'servers')[0] ?? '')
      await promisify(execFile)('tar', ['-xzf', join(out, 'last.tgz'), '-C', home])
      for (const app of NAMES) {
        const health = JSON.parse(readFileSync(join(home, 'last', app, 'health.json'), 'utf8'))
        expect([app, health.status]).toEqual([app, 'ready'])
      }
    })
  })

  describe('rotate.md', () => {
    const [renew = '', next = '', use = '', retire = '', accounts = '', roles = '', leaked = ''] = blocksOf(
      'rotate.md',
      'servers',
      'all',
    )
    const authority = () => readFileSync(join(out, 'tls/ca.key'), 'utf8')
    const pairOf = (name: string) => ({
      cert: readFileSync(join(out, `tls/${name}.pem`)),
      key: readFileSync(join(out, `tls/${name}.key`)),
    })
    let old: ReturnType<typeof pairOf>

    it('changes every key and the authority in two steps, and apps of both steps understand each other', async () => {
      const before = authority()
      await typed(renew)
      old = pairOf('gateway')
      await typed(next)
      await restart()
      await serves()
      await typed(use)
      expect(authority()).not.toBe(before)
      // The odd ones sign with new keys, the even ones with old ones.
      await restart(up().apps.filter((_app, i) => i % 2 === 0))
      await serves()
      await restart(up().apps.filter((_app, i) => i % 2 === 1))
      await serves()
      await expect(typed(use)).rejects.toThrow('run --rotate next first')
    }, 240_000)

    it('ends no trust that a server still needs: each is named, and no file changes', async () => {
      const before = readFileSync(join(out, 'tls/ca.pem'), 'utf8')
      const shows = 'a certificate of the authority of before'
      await expect(typed(retire)).rejects.toThrow(
        new RegExp(
          ['postgres', 'redis', 'nats', 'temporal'].map((name) => `${name} at .+ shows ${shows}`).join('.+'),
          's',
        ),
      )
      await up()
        .servers.managed.find(({ name }) => name === 'redis')
        ?.stop()
      await expect(typed(retire)).rejects.toThrow(/redis at .+ECONNREFUSED.+nats/s)
      await up()
        .servers.managed.find(({ name }) => name === 'redis')
        ?.start()
      expect(readFileSync(join(out, 'tls/ca.pem'), 'utf8')).toBe(before)
    })

    it('ends the trust in the authority of before: its certificates alone are refused', async () => {
      const files = { cert_file: join(out, 'tls/postgres.pem'), key_file: join(out, 'tls/postgres.key') }
      postgresTls(dataFolder(home), files)
      up().frontend.renew()
      for (const server of up().servers.managed.filter(({ name }) => name !== 'temporal')) {
        await server.stop()
        await server.start()
      }
      await serves()
      const shown = new Agent({ connect: { ...old, ca: readFileSync(join(out, 'tls/ca.pem')) } })
      const admits = async (app: string) => {
        const url = `https://127.0.0.1:${up().portOf(app, 'internal')}/metrics`
        const { statusCode, body } = await request(url, { dispatcher: shown, reset: true })
        await body.dump()
        return statusCode === 200
      }
      const admitting = async () => (await Promise.all(NAMES.map(admits))).filter(Boolean).length
      expect(await admitting()).toBe(NAMES.length)
      await typed(retire)
      // Not so often that the limit of sign-ins refuses them.
      const refused = new Set<string>()
      const turn = async () => {
        for (const [path, status] of await readings()) if (status !== 200) refused.add(`${path} ${status}`)
        return (await admitting()) === 0
      }
      await until(turn, { what: 'every app to refuse the old certificate', timeout_ms: 150_000, every_ms: 8000 })
      expect([...refused]).toEqual([])
      await restart()
      await serves()
    }, 400_000)

    it('leaves no weakness, and an audit log that old and new keys verify', async () => {
      const [verify = ''] = blocksOf('roll-back.md', 'servers')
      expect(await typed(verify)).not.toContain('not signed')
      const { status, text } = await doctor()
      expect([text, status]).toEqual([expect.stringMatching(/^ok .*9 apps/m), 0])
    })

    it('replaces keys that leaked, and operations and credential serve with the new ones', async () => {
      await typed(leaked)
      await restart(up().apps.filter(({ name }) => ['operations', 'credential'].includes(name)))
      await serves()
      const { status, text } = await doctor()
      expect([text, status]).toEqual([expect.stringMatching(/^ok .*9 apps/m), 0])
    }, 240_000)

    it('changes the passwords of the servers', async () => {
      await typed(accounts)
      await typed(roles)
      const { text } = await doctor()
      // Postgres has the new ones; Redis and NATS get them from the files.
      expect(text).not.toContain('postgres')
      expect(text).toContain('redis')
    })
  })

  describe('backup.md, then restore.md', () => {
    const account = unprivileged()
    const backup = join(home, 'backup')
    const asOwner = (statement: string) =>
      withConnection({ connectionString: up().servers.postgres.url(undefined, 'signalbox') }, (client) =>
        client.query(statement),
      )
    const stopped = async (act: () => Promise<unknown>) => {
      const postgres = up().servers.managed.find(({ name }) => name === 'postgres')
      await postgres?.stop()
      await act()
      await postgres?.start()
    }

    it('go back to a point in time: what was committed before it is there, what came later is not', async () => {
      mkdirSync(join(backup, 'wal'), { recursive: true })
      // Another account cannot enter the folder of the configuration.
      copyFileSync(join(out, 'tls/ca.pem'), join(backup, 'ca.pem'))
      if (account) for (const file of ['', 'wal', 'ca.pem']) chownSync(join(backup, file), account.uid, account.gid)
      const url = up().owner.OWNER_URL.replace(join(out, 'tls/ca.pem'), join(backup, 'ca.pem'))
      const env = { BACKUP: backup, PGDATA: dataFolder(home), OWNER_URL: url, HOME: backup }
      const [archive = '', keep = '', files = '', drill = ''] = blocksOf('backup.md', 'servers')
      const [base = ''] = blocksOf('backup.md', 'postgres')
      await typed(archive, env)
      await stopped(async () => {})
      const command = (await asOwner('show archive_command')).rows[0].archive_command as string
      const shelve = (file: string) => typed(command.replaceAll('%p', file).replaceAll('%f', 'first'), env)
      await shelve(join(ROOT, 'README.md'))
      await shelve(join(ROOT, 'README.md')) // as after a crash that came before Postgres noted the success
      await expect(shelve(join(ROOT, 'LICENSE'))).rejects.toThrow()
      expect(readFileSync(join(backup, 'wal/first'))).toEqual(readFileSync(join(ROOT, 'README.md')))
      const sha256 = sha256Hex('a saved plan')
      const stored = (folder: string) => join(folder, sha256.slice(0, 2), sha256)
      const artifacts = join(home, 'data/artifacts')
      mkdirSync(dirname(stored(artifacts)), { recursive: true })
      writeFileSync(stored(artifacts), 'a saved plan')
      await asOwner(`insert into operations.operation_artifact_index values (gen_random_uuid(), gen_random_uuid(), 'apply', 1,
        'plan', 'plan', 'text/plain', 12, '${sha256}', 'stored', null, null, now() - interval '3 days')`)
      await typed(base, env, account)
      await typed(keep, env)
      for (const name of readdirSync(backup).filter((file) => file.startsWith('config-')))
        expect([name, statSync(join(backup, name)).mode & 0o077]).toEqual([name, 0])
      // On another disk.
      const from = readdirSync(backup).find((name) => name.startsWith('base-')) ?? ''
      renameSync(join(backup, from), join(home, 'base'))
      symlinkSync(join(home, 'base'), join(backup, from))
      const live = { TOKEN__KEYS__KEK: Buffer.alloc(32, 7).toString('base64'), PGPORT: '1', PGSSLMODE: 'require' }
      const room = join(home, 'room')
      const again = `${drill.trim()} --into ${room}`
      expect(await typed(again, { ...env, ...live })).toMatch(
        /PEOPLE.+identity.user_events +\d.+ as written.+Not verified: the files of 1 .+Not verified: Temporal.+The backup holds/s,
      )
      await typed(files, env)
      expect(await typed(drill, env)).toMatch(/Artifacts: 1 of 1 .+The backup holds/s)
      writeFileSync(stored(join(backup, 'artifacts')), 'another plan')
      await expect(typed(drill, env)).rejects.toThrow(/FAIL {2}1 of these artifacts.+does not hold/s)
      // A copy that has stopped.
      rmSync(stored(join(backup, 'artifacts')))
      await expect(typed(drill, env)).rejects.toThrow(/FAIL {2}1 of these artifacts.+does not hold/s)
      rmSync(join(backup, 'artifacts'), { recursive: true })
      await typed('pg_verifybackup --quiet "$BACKUP"/base-*', env, account)
      expect(readdirSync(room)).toEqual([])
      await expect(typed(`${drill.trim()} --env "$CONFIG"`, env)).rejects.toThrow('--backup takes no --env')
      const bare = join(home, 'bare')
      mkdirSync(bare)
      symlinkSync(join(home, 'base'), join(bare, from))
      await typed(keep, { ...env, BACKUP: bare })
      await expect(typed(drill, { ...env, BACKUP: bare })).rejects.toThrow('holds no log')
      mkdirSync(join(bare, 'wal'))
      copyFileSync(join(ROOT, 'README.md'), join(bare, 'wal/000000010000000000000001'))
      const unshipped = /FAIL .*was not replayed.+does not hold/s
      await expect(typed(drill, { ...env, BACKUP: bare })).rejects.toThrow(unshipped)
      // The scratch server has begun another timeline, of which no file may reach the archive.
      expect(readdirSync(join(backup, 'wal')).filter((name) => name.startsWith('00000002'))).toEqual([])
      const faults = /FAIL .* does not open the signing keys.+FAIL .*audit logs.+does not hold/s
      const other = join(home, 'other')
      cpSync(out, other, { recursive: true })
      const secrets = join(other, 'env/token.secret.env')
      const text = readFileSync(secrets, 'utf8')
      writeFileSync(secrets, text.replace(/^TOKEN__KEYS__KEK=.*$/m, `TOKEN__KEYS__KEK=${live.TOKEN__KEYS__KEK}`))
      await typed(keep.replace('$(date +%F)', '9999'), { ...env, CONFIG: other })
      await expect(typed(drill, { ...env, RELAY__AUDIT__ANCHOR_FILE: '/nowhere' })).rejects.toThrow(faults)
      rmSync(join(backup, 'config-9999.tgz'))
      const early = typed(`${drill.trim()} --to 2026-01-01T00:00:00Z`, env)
      await expect(early).rejects.toThrow('no folder base-… with a backup_manifest from before that time')
      await asOwner("create table public.told as select 'before' as what")
      const { rows } = await asOwner('select clock_timestamp()::text as now')
      await asOwner("insert into public.told values ('after')")
      const [back = '', tidy = ''] = blocksOf('restore.md', 'postgres')
      await stopped(() => typed(back, { ...env, TO: rows[0].now, BASE: join(home, 'base') }))
      const promoted = async () => !(await asOwner('select pg_is_in_recovery() as is')).rows[0].is
      await until(promoted, { what: 'the promotion' })
      expect((await asOwner('select what from public.told')).rows).toEqual([{ what: 'before' }])
      await typed(tidy, env, account)
      const kept = readFileSync(join(env.PGDATA, 'postgresql.auto.conf'), 'utf8')
      expect([kept.includes('restore_command'), kept.includes('recovery_target')]).toEqual([true, false])
    }, 400_000)
  })

  describe('uninstall.md', () => {
    const [, remove = ''] = blocksOf('uninstall.md', 'servers')

    it('leaves no database, role or namespace', async () => {
      await Promise.all(up().apps.map((app) => app.stop()))
      const next = readFileSync(join(out, 'NEXT.md'), 'utf8')
      const [at = ''] = /export TEMPORAL_ADDRESS.+/.exec(next) ?? []
      const PATH = `${up().postgres_tools}:${dirname(await locateTemporal(silentScreen))}:${process.env.PATH}`
      const key = readFileSync(join(out, 'keys/temporal.key'), 'utf8').trim()
      // NEXT.md has made this namespace; the platform of the test has another name.
      const block = `${at}\n${remove.replace('--namespace signalbox', '--namespace next')}`
      await typed(block, { PATH, TEMPORAL_API_KEY: key })
      const { rows } = await withConnection({ connectionString: up().servers.postgres.admin_url }, (client) =>
        client.query(
          "select rolname as name from pg_roles where rolname like 'signalbox%' union all select datname from pg_database where datname = 'signalbox'",
        ),
      )
      expect(rows).toEqual([])
    })
  })
}
