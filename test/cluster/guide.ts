import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { ROOT } from '../../apps/platform/base/paths.ts'
import { silentScreen } from '../../apps/platform/base/screen.ts'
import { systemPackage } from '../../apps/platform/servers/packages.ts'
import { reachable, unprivileged } from '../../apps/platform/servers/postgres.ts'
import { locate, onPath } from '../../apps/platform/servers/sources.ts'
import { ensureServers } from '../../apps/platform/servers/up.ts'
import { findPostgres } from '../platform/support/installation.ts'
import { blocksOf } from '../support/guides.ts'
import { hasNamespaces } from '../support/namespaces.ts'
import { scratchFolder } from '../support/servers.ts'

/** Of each log, if a command fails. */
const LAST_LINES = 6

/** While the last step before the end rotates all keys, a person reads through every app, and no request is refused. */
const underReads = (block: string): string => `
node "$PWD/test/cluster/reader.ts" "$CONFIG" > "$DATA/logs/reader" 2>&1 & reader=$!
until grep -q reads "$DATA/logs/reader"; do sleep 1; kill -0 $reader; done
${block}
kill $reader
wait $reader || { cat "$DATA/logs/reader"; exit 1; }
cat "$DATA/logs/reader"`

/**
 * Types the guide "On one machine", word by word, in one shell and as an ordinary user. Returns the exit code of the first
 * command that failed, or 0; 1 if it leaves a file that other accounts can read. Root runs it in a network of its own;
 * elsewhere the guide's ports must be free.
 */
export const followGuide = async (): Promise<number> => {
  const { redis, nats, temporal } = await ensureServers(silentScreen)
  const sources = [onPath(['haproxy'], '2.4.0'), systemPackage({ apt: 'haproxy', brew: 'haproxy' }, ['haproxy'])]
  const haproxy = await locate('haproxy', sources, 'install haproxy.', silentScreen)
  let postgres = await findPostgres()
  const home = scratchFolder()
  const bin = join(home, 'bin')
  mkdirSync(bin)
  const programs = { node: process.execPath, 'redis-server': redis, 'nats-server': nats, temporal, haproxy }
  const account = unprivileged()
  // An ordinary user cannot enter root's cache.
  for (const [name, file = name] of Object.entries(programs))
    (account ? copyFileSync : symlinkSync)(file, join(bin, name))
  if (account && !reachable(postgres, account)) {
    const [usr, copy] = [join(postgres, '../../..'), join(home, 'usr')]
    cpSync(usr, copy, { recursive: true, verbatimSymlinks: true })
    postgres = postgres.replace(usr, copy)
  }
  // An ordinary user has a checkout of their own.
  const checkout = account ? join(home, 'checkout') : ROOT
  if (account) {
    execFileSync('git', ['clone', '--quiet', ROOT, checkout])
    // A folder of their own, because Vite writes into it.
    const modules = join(checkout, 'node_modules')
    mkdirSync(modules)
    for (const name of readdirSync(join(ROOT, 'node_modules')))
      if (name !== '.vite-temp') symlinkSync(join(ROOT, 'node_modules', name), join(modules, name))
    execFileSync('chown', ['-R', `${account.uid}:${account.gid}`, home])
  }
  for (let at = home; at.includes('signalbox-'); at = dirname(at)) chmodSync(at, statSync(at).mode | 0o011)
  const blocks = blocksOf('one-machine.md', 'machine')
  const [last = ''] = blocks.splice(-1)
  blocks.push(underReads(blocks.pop() ?? ''))
  const steps = blocks.map((block, i) => `echo; echo "STEP ${i + 1}"\n${block}`)
  // Whatever happens, the last step stops all that was started.
  const script = `trap 'code=$?; set +eu; echo; echo "THE END, $code"; ${last.replaceAll("'", `'\\''`)}\nexit $code' EXIT\n${steps.join('\n')}`
  const apart = account && hasNamespaces()
  const bash = ['bash', '-euo', 'pipefail', '-c', script]
  const user = ['setpriv', `--reuid=${account?.uid}`, `--regid=${account?.gid}`, '--clear-groups']
  const network = ['unshare', '--net', 'sh', '-c', 'ip link set lo up; exec "$@"', 'sh', ...user]
  const [command = '', ...args] = apart ? [...network, ...bash] : bash
  const shell = spawn(command, args, {
    cwd: checkout,
    env: { PATH: [bin, join(postgres, 'bin'), process.env.PATH].join(':'), HOME: home },
    stdio: ['ignore', 'inherit', 'inherit'],
    ...(!apart && account),
  })
  const [code] = (await once(shell, 'close')) as [number | null]
  const made = join(home, 'signalbox')
  const open = existsSync(made) ? execFileSync('find', [made, '-type', 'f', '-perm', '/o=r']).toString() : ''
  if (open) console.log(`Every account of the machine can read:\n${open}`)
  const logs = join(made, 'logs')
  if (code !== 0 && existsSync(logs))
    for (const name of readdirSync(logs))
      console.log(`--- ${name}\n${readFileSync(join(logs, name), 'utf8').split('\n').slice(-LAST_LINES).join('\n')}`)
  rmSync(home, { recursive: true, force: true })
  return open ? 1 : (code ?? 1)
}
