import { spawn } from 'node:child_process'
import { chmodSync, chownSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { QUICK_IMPORTS, ROOT } from '../../apps/platform/base/paths.ts'
import { silentScreen } from '../../apps/platform/base/screen.ts'
import { reachable, unprivileged } from '../../apps/platform/servers/postgres.ts'
import { ensureServers } from '../../apps/platform/servers/up.ts'
import { withoutGivenServers } from '../support/servers.ts'
import { running, runVerb } from './support/verb.ts'

/** As a normal user every other test of the platform already covers this. */
const nobody = unprivileged()

const SCRIPT = `
const { withTestServers } = await import('${join(ROOT, 'test/run/test-servers.ts')}')
const { createScreen } = await import('${join(ROOT, 'apps/platform/base/screen.ts')}')
await withTestServers(createScreen(), async (env) => console.log(process.getuid(), Object.keys(env).length))
`

describe.runIf(nobody && reachable(ROOT, nobody))('a normal user', () => {
  it('learns from the doctor that files belong to another account, as after sudo', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'signalbox-foreign-'))
    try {
      const doctor = runVerb('doctor', [], { env: { SIGNALBOX_DIR: dir }, ...nobody })
      expect(await doctor.ended).toBe(1)
      expect(doctor.text()).toMatch(/^wrong .* belongs to another account\. Give it back: sudo chown -R/m)
      expect(doctor.text()).not.toMatch(/\n\s+at /)
    } finally {
      rmSync(dir, { recursive: true, force: true })
    }
  }, 60_000)

  it('starts and stops all servers', async () => {
    const { uid, gid } = nobody as { uid: number; gid: number }
    const home = mkdtempSync(join(tmpdir(), 'signalbox-user-'))
    try {
      chmodSync(home, 0o755)
      const programs = await withoutGivenServers(['postgres', 'redis', 'nats', 'temporal'], () =>
        ensureServers(silentScreen),
      )
      for (const folder of ['bin', 'tmp', 'cache']) {
        mkdirSync(join(home, folder))
        chownSync(join(home, folder), uid, gid)
      }
      // The programs that root found may be in its own home.
      for (const program of [programs.redis, programs.nats, programs.temporal])
        if (program) copyFileSync(program, join(home, 'bin', basename(program)))
      writeFileSync(join(home, 'servers.mjs'), SCRIPT)
      const child = running(
        spawn(process.execPath, ['--import', QUICK_IMPORTS, join(home, 'servers.mjs')], {
          cwd: home,
          uid,
          gid,
          env: {
            HOME: home,
            TMPDIR: join(home, 'tmp'),
            SIGNALBOX_CACHE: join(home, 'cache'),
            PATH: `${join(home, 'bin')}:/usr/bin:/bin`,
          },
          stdio: ['ignore', 'pipe', 'pipe'],
        }),
      )
      const code = await child.ended
      expect(child.text()).toContain(`${uid} 4`)
      expect(code).toBe(0)
    } finally {
      rmSync(home, { recursive: true, force: true })
    }
  }, 60_000)
})
