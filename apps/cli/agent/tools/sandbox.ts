import { spawnSync } from 'node:child_process'
import { existsSync, lstatSync, readlinkSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import type { AgentFile } from './file.ts'

/** Folders that are links into /usr on most systems. */
const ROOT = ['/bin', '/sbin', '/lib', '/lib32', '/lib64']
/** Names, users and certificates. The rest of /etc may hold keys, as do /etc/ssl/private and /etc/pki/tls/private. */
const ETC = [
  ...['alternatives', 'ca-certificates', 'crypto-policies', 'gai.conf', 'group', 'host.conf', 'hosts', 'ld.so.cache'],
  ...['ld.so.conf', 'ld.so.conf.d', 'localtime', 'nsswitch.conf', 'passwd', 'protocols', 'resolv.conf', 'services'],
  ...['certs', 'cert.pem', 'ca-bundle.pem', 'openssl.cnf'].map((name) => `ssl/${name}`),
  ...['ca-trust', 'trust', 'tls/certs', 'tls/cert.pem', 'tls/openssl.cnf'].map((name) => `pki/${name}`),
].map((name) => `/etc/${name}`)
const CHECK_MS = 30_000
/** A shell finds a program by the rights of its user, without starting it. */
const RUNS = '[ -x "$1" ] || { echo "it is not there, or not executable" >&2; exit 1; }'

type Asked = {
  path: string
  args: readonly string[]
  cwd: string
  /** Other programs that it starts. */
  programs?: readonly string[]
  read: readonly string[]
  write: readonly string[]
}

const present = (path: string) => {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (!found) return []
  return found.isSymbolicLink() ? ['--symlink', readlinkSync(path), path] : ['--ro-bind', path, path]
}
const isBelow = (path: string, roots: readonly string[]): boolean => roots.some((root) => path.startsWith(`${root}/`))

/** A program and the file that its links lead to, which may be in another folder. */
const filesOf = (path: string): string[] => (existsSync(path) ? [path, realpathSync(path)] : [path])

/**
 * Each path after those that hold it, so that the rule for the inner one holds. Equal paths are writable. Files of
 * programs below one of them are seen already, and a link on the way to a file could not be its mount point.
 */
const bound = (files: readonly string[], read: readonly string[], write: readonly string[]): string[] => {
  const own = files.filter((one) => !isBelow(one, [...read, ...write]))
  const seen = [...own, ...read].filter((one) => !isBelow(one, ['/usr', ...ROOT]) || isBelow(one, write))
  return [...[...new Set(seen)].map((one) => ['--ro-bind-try', one]), ...write.map((one) => ['--bind', one])]
    .sort(([, a = ''], [, b = '']) => (a < b ? -1 : a > b ? 1 : 0))
    .flatMap(([how = '', one = '']) => [how, one, one])
}

/**
 * The program in namespaces of its own: it sees /usr, the folder of its attempt and the paths of its job and the agent's
 * file, and no process but its own. All of them die with bwrap. A write to any other place fails, because it would be lost.
 * It has no capabilities: with those that root keeps by default, it could mount the paths as writable.
 */
export const contain = (
  { bwrap, read = [], write = [] }: NonNullable<AgentFile['sandbox']>,
  { path, args, cwd, programs = [], ...asked }: Asked,
): { path: string; args: string[] } => ({
  path: bwrap,
  args: [
    ...['--unshare-user', '--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try'],
    ...['--cap-drop', 'ALL', '--die-with-parent', '--new-session', '--info-fd', '4'],
    ...['--ro-bind', '/usr', '/usr', ...ROOT.flatMap(present)],
    ...ETC.flatMap((one) => ['--ro-bind-try', one, one]),
    ...['--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp'],
    ...bound([path, ...programs].flatMap(filesOf), [...asked.read, ...read], [...write, ...asked.write]),
    ...['--remount-ro', '/', '--chdir', cwd, '--', path, ...args],
  ],
})

/** A program that the agent's file names, by its place there, and the other paths that its jobs need. */
export type Named = Partial<Pick<Asked, 'programs' | 'read' | 'write'>> & {
  place: string
  path: string
  uid?: number | undefined
}

/** Every program that the agent's file names. A `state` comes with its first job; a missing repository fails its own. */
export const programsIn = ({ known, tofu, ssh, git, ansible, kubernetes, state_dir }: AgentFile): Named[] => {
  const states = Object.values(tofu?.sources ?? {}).flatMap(({ state }) => state ?? [])
  const repos = Object.values(git?.repos ?? {}).flatMap(({ url }) => (url.startsWith('/') ? [url] : []))
  const paths: Record<string, Partial<Named>> = {
    tofu: {
      read: [join(state_dir, 'providers'), ...(tofu?.providers === undefined ? [] : [tofu.providers])],
      write: states.filter(existsSync),
    },
    git: { programs: ssh ? [ssh.program] : [], write: repos.filter(existsSync) },
  }
  return [
    ...[...known].map(([name, { path, uid }]) => ({ place: `programs/${name}`, path, uid })),
    ...Object.entries({ tofu, ssh, git, ansible, kubernetes }).flatMap(([name, tool]) =>
      tool ? [{ place: `${name}/program`, path: tool.program, ...paths[name] }] : [],
    ),
    ...(kubernetes?.helm === undefined ? [] : [{ place: 'kubernetes/helm', path: kubernetes.helm }]),
  ]
}

/** How a check ends as this user: `undefined` if well. */
const ends = ({ path, args }: { path: string; args: string[] }, uid: number | undefined): string | undefined => {
  const { status, signal, stderr, error } = spawnSync(path, args, {
    ...{ timeout: CHECK_MS, encoding: 'utf8', env: {}, cwd: '/', stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'] },
    ...(uid && { uid, gid: uid }),
  })
  return status === 0 ? undefined : (error?.message ?? (stderr.trim() || `${path} ended with ${signal ?? status}`))
}
const usersOf = ({ uids }: AgentFile, own?: number) => (own === undefined && uids.length > 0 ? uids : [own])

/** Why jobs cannot run this program as one of their users, in the sandbox if there is one; `undefined` if they can. */
export const programFault = (
  file: AgentFile,
  { place, path, programs = [], read = [], write = [], uid }: Named,
): string | undefined => {
  const test = { path: '/bin/sh', args: ['-c', RUNS, 'sh', path] }
  const asked = { ...test, cwd: '/', programs: [path, ...programs], read, write }
  for (const user of usersOf(file, uid)) {
    const fault = ends(file.sandbox ? contain(file.sandbox, asked) : test, user)
    if (fault === undefined) continue
    const who = user === undefined ? 'jobs' : `uid ${user}`
    return `${place}: ${who} cannot run ${path}: ${fault}. Let that user reach the program and the paths of its jobs.`
  }
  return undefined
}

/** Why this machine cannot run jobs in the sandbox that the agent's file names; `undefined` if it can. */
export const sandboxFault = (file: AgentFile): string | undefined => {
  const { sandbox } = file
  if (!sandbox) return undefined
  const check = contain(sandbox, { path: '/bin/true', args: [], cwd: '/', read: [], write: [] })
  for (const user of usersOf(file)) {
    const fault = ends(check, user)
    if (fault !== undefined) return `The sandbox does not start: ${fault}.`
  }
  return undefined
}

/** Why an agent cannot start: its sandbox does not, or not with a program of the file. A missing program only fails its jobs. */
export const startFault = (file: AgentFile): string | undefined => {
  if (!file.sandbox) return undefined
  const there = programsIn(file).filter(({ path }) => existsSync(path))
  return sandboxFault(file) ?? there.map((one) => programFault(file, one)).find((fault) => fault !== undefined)
}
