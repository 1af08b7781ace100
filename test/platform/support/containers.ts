import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, closeSync, mkdirSync, openSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ROOT } from '../../../apps/platform/base/paths.ts'
import { until } from '../../support/until.ts'
import type { Service } from './compose.ts'

/** Facts of an image that its Dockerfile has, not the compose file. */
export type ImageFacts = {
  /** Folders by their place in the container. */
  files?: Record<string, string>
  env: Record<string, string>
  entrypoint?: string[]
  user: { uid: number; gid: number }
  /** The working folder. */
  at: string
}

type Check = NonNullable<Service['healthcheck']>

/** Folders in which a container has a folder of its own beside those of this machine. */
const SPLIT = ['/', '/home', '/var', '/var/lib']

/**
 * One network for the services, each at a loopback address of its own: a listener at 127.0.0.1 alone is not found, as in
 * Docker. Their root is a tmpfs with this machine's folders, so that no mount point appears here.
 */
const rootScript = (root: string, names: readonly string[], programs: Record<string, string>): string => `set -e
ip link set lo up
mount -t tmpfs none '${root}'
chmod 755 '${root}'
for of in ${SPLIT.join(' ')}; do
  mkdir -p "${root}$of"
  for entry in "\${of%/}"/*; do
    case " ${[...SPLIT, '/etc', '/proc', '/data', '/signalbox'].join(' ')} " in *" $entry "*) continue ;; esac
    if [ -h "$entry" ]; then cp -d "$entry" "${root}$entry"
    elif [ -d "$entry" ]; then mkdir "${root}$entry"; mount --rbind "$entry" "${root}$entry"
    elif [ -f "$entry" ]; then touch "${root}$entry"; mount --bind "$entry" "${root}$entry"; fi
  done
done
cp -a /etc '${root}/etc'
mkdir -p '${root}/proc' '${root}/programs'
cat > '${root}/etc/hosts' <<END
127.0.0.1 localhost
${names.map((name, i) => `127.0.1.${i + 1} ${name}`).join('\n')}
END
${Object.entries(programs)
  .map(([name, file]) => `ln -s '${file}' '${root}/programs/${name}'`)
  .join('\n')}
echo ready
exec sleep infinity`

const interpolated = (text: string): string => text.replaceAll(/\$\{(\w+):-([^}]*)\}/g, '$2')

/** Runs services of a compose file as processes in namespaces of their own, below `home`. */
export const startMachine = async (home: string, names: readonly string[], programs: Record<string, string>) => {
  const root = join(home, 'root')
  mkdirSync(root)
  const script = rootScript(root, names, programs)
  const holder = spawn('unshare', ['--net', '--mount', 'sh', '-c', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  await until(() => holder.exitCode === null && holder.stdout.read()?.toString().includes('ready'), {
    what: 'the root of the containers',
  })
  const inside = ['--target', String(holder.pid), '--net', '--mount']
  const logOf = (name: string) => readFileSync(join(home, `${name}.log`), 'utf8')
  const running = new Map<string, { child: ChildProcess; env: string[]; facts: ImageFacts }>()

  /** The first process of a container, as this machine numbers it. */
  const firstOf = (child: ChildProcess): string =>
    readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim().split(' ')[0] as string

  const mountsOf = ({ volumes = [] }: Service, { files = {}, user }: ImageFacts): string[] => {
    const bound = volumes.map((volume): [string, string] => {
      const [source = '', at = ''] = volume.split(':')
      if (source.startsWith('.')) return [join(ROOT, source), at]
      const folder = join(home, 'volumes', source)
      if (mkdirSync(folder, { recursive: true })) chownSync(folder, user.uid, user.gid)
      return [folder, at]
    })
    return [...Object.entries(files).map(([at, from]): [string, string] => [from, at]), ...bound].map(([from, at]) => {
      const to = root + at
      const place = statSync(from).isFile() ? `mkdir -p '${dirname(to)}'; touch '${to}'` : `mkdir -p '${to}'`
      return `${place}; mount --bind '${from}' '${to}'`
    })
  }

  /** Its command, environment, volumes and user as Docker would give them. */
  const start = (name: string, service: Service, facts: ImageFacts): ChildProcess => {
    const [uid, gid] = service.user?.split(':') ?? [facts.user.uid, facts.user.gid]
    const given = {
      HOME: '/',
      ...facts.env,
      ...service.environment,
      PATH: `/programs:${process.env.PATH}`,
      HOSTNAME: name,
    }
    const env = Object.entries(given).map(([key, value]) => `${key}=${interpolated(value)}`)
    const log = openSync(join(home, `${name}.log`), 'a')
    const child = spawn(
      'nsenter',
      [
        ...inside,
        ...['unshare', '--mount', '--pid', '--fork', '--kill-child', 'sh', '-ec'],
        `${[...mountsOf(service, facts), `mount -t proc proc '${root}/proc'`].join('\n')}\nexec chroot '${root}' "$@"`,
        ...['sh', 'setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups'],
        ...['env', '-i', `--chdir=${facts.at}`, ...env, ...(facts.entrypoint ?? []), ...(service.command ?? [])],
      ],
      { stdio: ['ignore', log, log] },
    )
    closeSync(log)
    running.set(name, { child, env, facts })
    return child
  }

  /** A command in a running container, as `docker compose exec` does; returns what it prints. */
  const exec = (name: string, command: readonly string[]): string => {
    const { child, env, facts } = running.get(name) as { child: ChildProcess; env: string[]; facts: ImageFacts }
    const enter = ['--target', firstOf(child), '--net', '--mount', '--pid', '--root']
    return execFileSync('nsenter', [...enter, 'env', '-i', `--chdir=${facts.at}`, ...env, ...command], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: 60_000,
    })
  }

  return {
    start,
    exec,
    logOf,
    /** Waits as Docker does: until the check has passed, at most as often as it may fail. */
    healthy: async (name: string, { test: [, ...test], interval, retries }: Check): Promise<void> => {
      const { child } = running.get(name) as { child: ChildProcess }
      const has_passed = () => child.exitCode !== null || exec(name, test) !== undefined
      const limits = { every_ms: 500, timeout_ms: Number.parseInt(interval, 10) * 1000 * retries }
      await until(has_passed, { ...limits, what: `the health check of ${name}` }).catch((error: Error) => {
        throw new Error(`${error.message}\n${logOf(name)}`)
      })
      if (child.exitCode !== null) throw new Error(`${name} ended with ${child.exitCode}\n${logOf(name)}`)
    },
    /** Ends a container as Docker does; returns the exit code of its command, null if it was killed after the grace period. */
    stop: async (name: string, grace_ms: number): Promise<number | null> => {
      const { child } = running.get(name) as { child: ChildProcess }
      if (child.exitCode !== null) return child.exitCode
      const closed = once(child, 'close')
      process.kill(Number(firstOf(child)), 'SIGTERM')
      const late = setTimeout(() => child.kill('SIGKILL'), grace_ms)
      const [code] = (await closed) as [number | null]
      clearTimeout(late)
      return code
    },
    remove: async () => {
      for (const { child } of running.values()) if (child.exitCode === null) child.kill('SIGKILL')
      holder.kill('SIGKILL')
      await once(holder, 'close')
    },
  }
}
