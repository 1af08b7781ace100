import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { cacheDir } from '../../../apps/platform/base/paths.ts'
import { createScreen } from '../../../apps/platform/base/screen.ts'
import { systemPackage } from '../../../apps/platform/servers/packages.ts'
import { locate, run, type Source, which } from '../../../apps/platform/servers/sources.ts'
import { found, unpacked } from '../../support/unpacked.ts'
import { until } from '../../support/until.ts'

/** The executors' real tools, as installed on this machine or brought by its packages. */
const screen = createScreen()
const present = (program: string): Source => ({
  what: `${program} on PATH`,
  run: async () => {
    const found = which(program)
    if (!found) throw new Error('not there')
    return found
  },
})
export const locateSsh = () =>
  locate(
    'ssh',
    [present('ssh'), systemPackage({ apt: 'openssh-client' }, ['ssh'])],
    'install the OpenSSH client.',
    screen,
  )
export const locateGit = () =>
  locate('git', [present('git'), systemPackage({ apt: 'git', brew: 'git' }, ['git'])], 'install git >= 2.38.', screen)

/** bubblewrap, in a folder that the users of jobs can read. */
export const locateBwrap = async (folder: string): Promise<string> => {
  const home = join(cacheDir(), 'bubblewrap')
  const sources = [
    present('bwrap'),
    found(join(home, 'usr/bin/bwrap')),
    unpacked(home, ['bubblewrap'], 'usr/bin/bwrap'),
  ]
  const located = await locate('bwrap', sources, 'install bubblewrap.', screen)
  if (!located.startsWith(home)) return located
  cpSync(located, join(folder, 'bwrap'))
  chmodSync(join(folder, 'bwrap'), 0o755)
  return join(folder, 'bwrap')
}

/** The server, with a library that gives it users. */
const PACKAGES = ['openssh-server', 'libwrap0', 'libnss-wrapper']
const NOBODY = 65_534

/**
 * A real sshd on its own port, with its own keys and users. As root it runs as nobody, who logs in as "deploy"; only
 * this sshd knows that user.
 */
export const startSshd = async (folder: string, name = 'sshd', banner = '') => {
  const home = join(cacheDir(), 'openssh-server')
  const sources = [
    found('/usr/sbin/sshd'),
    found(join(home, 'usr/sbin/sshd')),
    unpacked(home, PACKAGES, 'usr/sbin/sshd'),
  ]
  const located = await locate('sshd', sources, 'install the OpenSSH server.', screen)
  const root = process.getuid?.() === 0
  const place = mkdtempSync(join(folder, `${name}-`))
  chmodSync(place, 0o755)
  // Other users cannot read root's cache.
  const ours = located.startsWith(home)
  const near = join(place, 'openssh')
  if (ours) cpSync(home, near, { recursive: true, verbatimSymlinks: true })
  const program = ours ? located.replace(home, near) : located
  const keygen = (file: string) =>
    run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', '', '-f', join(place, file)], { timeout_ms: 20_000 })
  for (const file of ['host', 'other', 'identity']) await keygen(file)
  const keyOf = (file: string) => readFileSync(join(place, `${file}.pub`), 'utf8').trim()
  const uid = root ? NOBODY : (process.getuid?.() ?? 0)
  const user = root ? 'deploy' : userInfo().username
  writeFileSync(join(place, 'authorized'), keyOf('identity'))
  writeFileSync(join(place, 'passwd'), `${user}:x:${uid}:${uid}::${place}:/bin/sh\n`)
  writeFileSync(join(place, 'group'), `${user}:x:${uid}:\n`)
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  const config = [
    ...[`Port ${port}`, 'ListenAddress 127.0.0.1', 'PidFile none', 'UsePAM no', 'StrictModes no', 'UseDNS no'],
    ...[`AuthorizedKeysFile ${place}/authorized`, 'PasswordAuthentication no', 'Subsystem sftp internal-sftp'],
    // What ansible leaves of a module that was killed goes with the rest.
    ...['MaxStartups 200', 'MaxSessions 200', `SetEnv TMPDIR=${place}`],
  ]
  if (banner) config.push(`Banner ${join(place, 'banner')}`)
  writeFileSync(join(place, 'banner'), banner)
  writeFileSync(join(place, 'config'), `${config.join('\n')}\n`)
  if (root) for (const file of readdirSync(place)) chownSync(join(place, file), uid, uid)
  if (root) chownSync(place, uid, uid)
  const library = (file: string) =>
    join(near, 'usr/lib', `${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu`, file)
  const env = {
    ...{ PATH: '/usr/bin:/bin', NSS_WRAPPER_PASSWD: join(place, 'passwd'), NSS_WRAPPER_GROUP: join(place, 'group') },
    ...(existsSync(library('libwrap.so.0')) && { LD_LIBRARY_PATH: join(library('')) }),
    ...(root && { LD_PRELOAD: library('libnss_wrapper.so') }),
  }
  let said = ''
  const start = (key: string) => {
    const child = spawn(program, ['-D', '-e', '-f', join(place, 'config'), '-h', join(place, key)], {
      ...{ env, stdio: ['ignore', 'ignore', 'pipe'] as const },
      ...(root && { uid, gid: uid }),
    })
    child.stderr.on('data', (chunk) => (said += chunk))
    return child
  }
  let child = start('host')
  const listening = () => until(() => /Server listening/.test(said), { what: `sshd listening: ${said}` })
  await listening()
  return {
    ...{ port, user, place, host_keys: [keyOf('host')], other_key: keyOf('other'), identity: join(place, 'identity') },
    said: () => said,
    /** The same server with another host key, as after a reinstallation or in the wrong hands. */
    changeKey: async () => {
      child.kill('SIGKILL')
      await once(child, 'exit')
      said = ''
      child = start('other')
      await listening()
    },
    stop: () => child.kill('SIGKILL'),
  }
}

const ANSIBLE = 'ansible-core==2.18.6'
/** ansible-playbook from PATH, or from a virtual environment in the cache. */
export const locateAnsible = () => {
  const home = join(cacheDir(), `python-${ANSIBLE.replace('==', '-')}`)
  const program = join(home, 'bin/ansible-playbook')
  const install: Source = {
    what: `pip install ${ANSIBLE}`,
    run: async (say) => {
      say(`installing ${ANSIBLE}`)
      mkdirSync(cacheDir(), { recursive: true })
      rmSync(home, { recursive: true, force: true })
      await run('python3', ['-m', 'venv', home], { timeout_ms: 120_000 })
      try {
        await run(join(home, 'bin/python'), ['-m', 'pip', 'install', '-q', ANSIBLE], { timeout_ms: 300_000 })
        return program
      } catch (error) {
        rmSync(home, { recursive: true, force: true })
        throw error
      }
    },
  }
  return locate('ansible', [present('ansible-playbook'), found(program), install], `pip install ${ANSIBLE}.`, screen)
}
