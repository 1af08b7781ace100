import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, readlinkSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { createScreen } from '../../../apps/platform/base/screen.ts'
import { spawnWorker } from '../../operations/support/worker.ts'
import { locateTofu } from '../../support/tofu.ts'
import { until } from '../../support/until.ts'
import { type Agent, type Lab, startLab } from './agent.ts'
import { locateAnsible, locateBwrap, locateGit, locateSsh, startSshd } from './tools.ts'

export type Case = {
  job: string
  inputs: (name: string) => object
  preview?: string
  program: () => string
  count: (name: string) => number
  more?: object
}
/** The descendants of this process. */
export const descendants = (of: number): number[] => {
  const parents = new Map<number, number>()
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      parents.set(Number(pid), Number(/\) \S (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1]))
    } catch {
      // It has ended in the meantime.
    }
  }
  const under = (pid: number | undefined): boolean => pid !== undefined && (pid === of || under(parents.get(pid)))
  return [...parents.keys()].filter((pid) => pid !== of && under(pid))
}
/** Kills each process of a program that an agent has started, or those with this argument; returns how many it met. */
export const killTool = (agent: Agent, program: string, argument?: string): number => {
  let met = 0
  for (const pid of descendants(agent.child.pid as number)) {
    try {
      const file = basename(readlinkSync(`/proc/${pid}/exe`))
      const args = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
      if (!file.startsWith(basename(program).replace(/\d.*$/, ''))) continue
      if (argument !== undefined && !args.includes(argument)) continue
      process.kill(pid, 'SIGKILL')
      met += 1
    } catch {
      // It has ended in the meantime.
    }
  }
  return met
}
/**
 * Four tools, each with an agent of its own. An act makes one effect, works for `rest_s` more, and leaves a second trace,
 * which is missing if the act was stopped. A held act continues once it is released.
 */
type Options = { rest_s?: number; more?: Record<string, object>; sandboxed?: boolean }
export const startActs = async ({ rest_s = 1, more = {}, sandboxed = false }: Options = {}) => {
  const files = new Map<string, object>()
  const agents = new Map<string, Agent>()
  const root = process.getuid?.() === 0
  const tofu = await locateTofu(createScreen())
  const [ansible, ssh, program] = await Promise.all([locateAnsible(), locateSsh(), locateGit()])
  const lab: Lab = await startLab(['tofu', 'ansible', 'ssh', 'git'], { bringWorker: spawnWorker, more })
  const sshd = await startSshd(lab.folder)
  const place = lab.place('effects')
  const held = (name: string) => `while [ -e ${place}/${name}.hold ]; do sleep 0.1; done`
  const act = (name: string) =>
    `echo did >> ${place}/${name}; ${held(name)}; sleep ${rest_s}; echo after >> ${place}/${name}.after`
  const web = lab.place('web')
  /** The first job makes it. */
  const state = join(lab.place('tfstates'), 'web')
  writeFileSync(
    join(web, 'main.tf'),
    `variable "name" {\n  type = string\n}\nresource "terraform_data" "one" {\n  provisioner "local-exec" {\n    command = "${act(`\${var.name}`)}"\n  }\n}\n`,
  )
  const shell = `    - ansible.builtin.shell: ${JSON.stringify(act('{{ name_of }}'))}\n`
  writeFileSync(join(web, 'site.yml'), `- hosts: all\n  gather_facts: false\n  tasks:\n${shell}`)
  const bare = join(lab.place('repos'), 'web.git')
  /** The user of the sshd owns the repository and works on it. */
  const as = root ? { uid: 65_534, gid: 65_534 } : {}
  const git = (args: string[], more: object = {}) =>
    execFileSync('git', ['-c', 'user.name=T', '-c', 'user.email=t@t', ...args], {
      ...{ ...as, encoding: 'utf8' as const, env: { PATH: process.env.PATH, HOME: lab.folder, GIT_DIR: bare } },
      ...more,
    }).trim()
  const effects = (name: string) => lab.linesOf(`effects/${name}`).length
  const commits = (name: string) => {
    const [head] = git(['for-each-ref', '--format=%(objectname)', `refs/heads/signalbox/${name}`]).split('\n')
    return head ? Number(git(['rev-list', '--count', `main..${head}`])) : 0
  }

  git(['init', '-q', '--bare', '-b', 'main', bare])
  const name_of = `name=\${ref#refs/heads/signalbox/}; echo met >> ${place}/$name.met`
  const hook = `#!/bin/sh\nwhile read -r _ _ ref; do ${name_of}; ${held('$name')}; done\n`
  writeFileSync(join(bare, 'hooks/pre-receive'), hook, { mode: 0o755 })
  const blob = git(['hash-object', '-w', '--stdin'], { input: 'one\n' })
  const tree = git(['mktree'], { input: `100644 blob ${blob}\ta.txt\n` })
  git(['update-ref', 'refs/heads/main', git(['commit-tree', tree, '-m', 'one'])])
  const key = { SIGNALBOX_SSH_KEY: { file: sshd.identity } }
  const user = root ? 65_534 : undefined
  const credentials = (...jobs: string[]) => ({ credentials: { host: { jobs, env: key } } })
  const client = { program: ssh, hosts: ['127.0.0.1'], users: [sshd.user] }
  const programs = {
    act: { path: lab.script('act', `shift; ${act('"$1"')}`), args: { type: 'array', items: { type: 'string' } } },
  }
  const url = `ssh://${sshd.user}@127.0.0.1:${sshd.port}${bare}`
  const vars = { ansible_python_interpreter: '/usr/bin/python3' }
  const given: Record<string, object> = {
    tofu: { uid: 0, tofu: { program: tofu, sources: { web: { path: web, state } } } },
    ansible: {
      uid: 0,
      ansible: { program: ansible, hosts: ['127.0.0.1'], sources: { web: { path: web, vars } } },
      ...credentials('ansible.run'),
    },
    ssh: { uid: user, ssh: { ...client, programs }, ...credentials('ssh') },
    git: {
      ...{ uid: user, ssh: client, ...credentials('git.preview', 'git.push') },
      git: { program, repos: { web: { url, host_keys: sshd.host_keys, push: ['signalbox/*'] } } },
    },
  }
  const bwrap = sandboxed ? await locateBwrap(lab.folder) : undefined
  /** Its folder and that of its Python; other users than root may not reach them. */
  const homes = () => [ansible, realpathSync(join(dirname(ansible), 'python3'))].map((path) => dirname(dirname(path)))
  const read = (pool: string) => (pool === 'ansible' ? homes() : [])
  const sandboxOf = (pool: string) => (bwrap ? { sandbox: { bwrap, read: read(pool), write: [place] } } : {})
  const start = (pool: string) => agents.set(pool, lab.startAgent(files.get(pool) ?? {}))
  const agentOf = (pool: string) => agents.get(pool) as Agent

  for (const [pool, file] of Object.entries(given)) {
    files.set(pool, { pools: [pool], concurrency: 2, ...sandboxOf(pool), ...file })
    start(pool)
  }
  const host = () => ({ address: '127.0.0.1', port: sshd.port, user: sshd.user, host_keys: sshd.host_keys })
  const CASES: Record<string, Case> = {
    tofu: {
      ...{ job: 'opentofu.apply', preview: 'opentofu.preview', program: () => tofu, count: effects },
      inputs: (name) => ({ source: 'web', workspace: name, variables: { name } }),
    },
    ansible: {
      ...{ job: 'ansible.run', program: () => 'python3', count: effects },
      inputs: (name) => ({
        ...{ source: 'web', playbook: 'site.yml', extra_vars: { name_of: name }, credentials: 'host' },
        inventory: { hosts: { web1: { ...host(), vars: {} } }, groups: {} },
      }),
    },
    ssh: {
      ...{ job: 'ssh', program: () => 'ssh', count: effects },
      inputs: (name) => ({ program: 'act', args: [name], host: host(), credentials: 'host' }),
    },
    git: {
      ...{ job: 'git.push', preview: 'git.preview', program: () => 'git', count: commits },
      inputs: (name) => ({
        ...{ repo: 'web', base: 'main', branch: `signalbox/${name}`, message: name, credentials: 'host' },
        files: { 'a.txt': `${name}\n` },
      }),
      more: { idempotent: true },
    },
  }

  /** Starts an act; `held`: a gate behind it keeps the operation open, and this does not wait for the act to begin. */
  const startCase = async (pool: string, name: string, held = false): Promise<string> => {
    const { job, inputs, preview, more } = CASES[pool] as Case
    const node = (node_id: string, job: string, inputs: object, own: object) => ({
      ...{ node_id, executor: 'external', pool, with: { job, inputs }, ...own },
      timeouts: { run_s: 120, start_s: 20, heartbeat_s: 5 },
      // A certain failure is done again: a wrong claim of failure would produce two effects.
      retry: { max_attempts: 4, initial_s: 1 },
    })
    const { variables, ...state } = inputs(name) as { variables?: object }
    const bound = pool === 'tofu' ? state : inputs(name)
    const plan =
      preview === undefined
        ? []
        : [
            node(
              'plan',
              preview,
              { ...state, ...(variables && { variables }) },
              { outputs: { preview: '/preview' }, idempotent: true },
            ),
          ]
    const shown = preview === undefined ? {} : { preview: { $from: 'nodes/plan/outputs/preview' } }
    const depends_on = preview === undefined ? [] : ['plan']
    const act = node(name, job, { ...bound, ...shown }, { depends_on, ...more })
    const rest = { node_id: 'rest', executor: 'noop', depends_on: [name] }
    const policy = { approvals: { groups: [{ group: 'netops', min: 1 }] } }
    const gates = [{ gate_id: 'hold', policy, guards: ['rest'] }]
    const path = await lab.startGraph(held ? { nodes: [...plan, act, rest], gates } : { nodes: [...plan, act] })
    if (held) return path
    const words = `${name}: ${job} started`
    await until(() => agentOf(pool).said().includes(words), { timeout_ms: 120_000, what: words })
    return path
  }

  /** Holds the act of this name, and returns what releases it. */
  const hold = (name: string) => {
    const path = join(place, `${name}.hold`)
    writeFileSync(path, '')
    return () => rmSync(path, { force: true })
  }
  /** Whether the act is at work: its effect is made, or the repository was asked for it. */
  const isActing = (name: string) => effects(name) + effects(`${name}.met`) > 0

  return {
    ...{ lab, CASES, startCase, start, agentOf, effects, hold, isActing },
    stop: async () => {
      sshd.stop()
      await lab.stop()
    },
  }
}
export type Acts = Awaited<ReturnType<typeof startActs>>
