import { spawnSync } from 'node:child_process'
import { lstatSync, readlinkSync } from 'node:fs'
import type { AgentFile } from './file.ts'

/** Folders that are links into /usr on most systems. */
const ROOT = ['/bin', '/sbin', '/lib', '/lib32', '/lib64']
/** Names, users and certificates. The rest of /etc may hold keys. */
const ETC = [
  ...['alternatives', 'ca-certificates', 'crypto-policies', 'gai.conf', 'group', 'host.conf', 'hosts', 'ld.so.cache'],
  ...['ld.so.conf', 'ld.so.conf.d', 'localtime', 'nsswitch.conf', 'passwd', 'pki', 'protocols', 'resolv.conf'],
  ...['services', 'ssl'],
].map((name) => `/etc/${name}`)
const CHECK_MS = 30_000

type Asked = { path: string; args: readonly string[]; cwd: string; read: readonly string[]; write: readonly string[] }

const present = (path: string) => {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (!found) return []
  return found.isSymbolicLink() ? ['--symlink', readlinkSync(path), path] : ['--ro-bind', path, path]
}
const inUsr = (path: string): boolean => ['/usr', ...ROOT].some((root) => path.startsWith(`${root}/`))

/**
 * The program in namespaces of its own: it sees /usr, the folder of its attempt and the paths of its job and the agent's
 * file, and no process but its own. All of them die with bwrap. A write to any other place fails, because it would be lost.
 */
export const contain = (
  { bwrap, read = [], write = [] }: NonNullable<AgentFile['sandbox']>,
  { path, args, cwd, ...asked }: Asked,
): { path: string; args: string[] } => ({
  path: bwrap,
  args: [
    ...['--unshare-user', '--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try'],
    ...['--die-with-parent', '--new-session', '--info-fd', '4', '--ro-bind', '/usr', '/usr', ...ROOT.flatMap(present)],
    ...ETC.flatMap((one) => ['--ro-bind-try', one, one]),
    ...['--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp'],
    ...[path, ...asked.read, ...read].filter((one) => !inUsr(one)).flatMap((one) => ['--ro-bind-try', one, one]),
    ...[...write, ...asked.write].flatMap((one) => ['--bind', one, one]),
    ...['--remount-ro', '/', '--chdir', cwd, '--', path, ...args],
  ],
})

/** Why this machine cannot run jobs in the sandbox that the agent's file names; `undefined` if it can. */
export const sandboxFault = ({ sandbox, uid }: AgentFile): string | undefined => {
  if (!sandbox) return undefined
  const { path, args } = contain(sandbox, { path: '/bin/true', args: [], cwd: '/', read: [], write: [] })
  const { status, signal, stderr, error } = spawnSync(path, args, {
    timeout: CHECK_MS,
    encoding: 'utf8',
    env: {},
    cwd: '/',
    stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'],
    ...(uid && { uid, gid: uid }),
  })
  if (status === 0) return undefined
  return `The sandbox does not start: ${error?.message ?? (stderr.trim() || `${path} ended with ${signal ?? status}`)}.`
}
