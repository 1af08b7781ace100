import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createScreen } from '../../apps/platform/base/screen.ts'
import { createDice, type Dice } from '../chaos/dice.ts'
import { spawnWorker } from '../operations/support/worker.ts'
import { locateTofu } from '../support/tofu.ts'
import { until } from '../support/until.ts'
import { type Agent, type Lab, startLab } from './support/agent.ts'
import { locateAnsible, locateGit, locateSsh, startSshd } from './support/tools.ts'

/**
 * Kills each tool's agent, the tool itself and the worker with kill -9 at random moments. Effects are counted where
 * they happen. KILLS_ROUNDS (1) sets the number of rounds, KILLS_SEED repeats the same moments.
 */
const rounds = Number(process.env.KILLS_ROUNDS ?? 1)
const seed = Number(process.env.KILLS_SEED ?? Date.now() % 1_000_000)
let lab: Lab
let sshd: Awaited<ReturnType<typeof startSshd>>
let tofu: string
let bare: string
const files = new Map<string, object>()
const agents = new Map<string, Agent>()
const root = process.getuid?.() === 0
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

beforeAll(async () => {
  tofu = await locateTofu(createScreen())
  const [ansible, ssh, program] = await Promise.all([locateAnsible(), locateSsh(), locateGit()])
  lab = await startLab(['tofu', 'ansible', 'ssh', 'git'], { bringWorker: spawnWorker })
  sshd = await startSshd(lab.folder)
  const place = lab.place('effects')
  const act = (name: string) => `echo did >> ${place}/${name}; sleep 1`
  const web = lab.place('web')
  const state = lab.place('tfstate')
  writeFileSync(
    join(web, 'main.tf'),
    `variable "name" {\n  type = string\n}\nresource "terraform_data" "one" {\n  provisioner "local-exec" {\n    command = "${act(`\${var.name}`)}"\n  }\n}\n`,
  )
  const shell = `    - ansible.builtin.shell: ${JSON.stringify(act('{{ name_of }}'))}\n`
  writeFileSync(join(web, 'site.yml'), `- hosts: all\n  gather_facts: false\n  tasks:\n${shell}`)
  bare = join(lab.place('repos'), 'web.git')
  git(['init', '-q', '--bare', '-b', 'main', bare])
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
      ansible: { program: ansible, sources: { web: { path: web, vars } } },
      ...credentials('ansible.run'),
    },
    ssh: { uid: user, ssh: { ...client, programs }, ...credentials('ssh') },
    git: {
      ...{ uid: user, ssh: client, ...credentials('git.preview', 'git.push') },
      git: { program, repos: { web: { url, host_keys: sshd.host_keys, push: ['signalbox/*'] } } },
    },
  }
  for (const [pool, file] of Object.entries(given)) {
    files.set(pool, { pools: [pool], concurrency: 2, ...file })
    start(pool)
  }
}, 300_000)
afterAll(async () => {
  sshd?.stop()
  await lab.stop()
})
const start = (pool: string) => agents.set(pool, lab.startAgent(files.get(pool) ?? {}))
const agentOf = (pool: string) => agents.get(pool) as Agent

type Case = {
  job: string
  inputs: (name: string) => object
  preview?: string
  program: () => string
  count: (name: string) => number
  more?: object
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

const startCase = async (pool: string, name: string): Promise<string> => {
  const { job, inputs, preview, more } = CASES[pool] as Case
  const node = (node_id: string, job: string, inputs: object, own: object) => ({
    ...{ node_id, executor: 'external', pool, with: { job, inputs }, ...own },
    timeouts: { run_s: 60, start_s: 20, heartbeat_s: 5 },
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
  const path = await lab.startGraph({
    nodes: [...plan, node(name, job, { ...bound, ...shown }, { depends_on, ...more })],
  })
  const words = `${name}: ${job} started`
  await until(() => agentOf(pool).said().includes(words), { timeout_ms: 120_000, what: words })
  return path
}

/** The descendants of this process. */
const descendants = (of: number): number[] => {
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
const killTool = (agent: Agent, program: string) => {
  for (const pid of descendants(agent.child.pid as number)) {
    try {
      const file = basename(readlinkSync(`/proc/${pid}/exe`))
      if (file.startsWith(basename(program).replace(/\d.*$/, ''))) process.kill(pid, 'SIGKILL')
    } catch {
      // It has ended in the meantime.
    }
  }
}
/** Roughly how long an act of each tool takes here. */
const LONGEST_MS: Record<string, number> = { tofu: 3000, ansible: 4000, ssh: 1800, git: 900 }

const endOf = async (pool: string, path: string, name: string, why: string) => {
  const ENDS = ['succeeded', 'failed', 'outcome_unknown']
  const node = await until(
    async () => {
      const now = await lab.nodeOf(path, name)
      return ENDS.includes(now.state) ? now : undefined
    },
    { timeout_ms: 120_000, what: `the end of ${name}, ${why}` },
  )
  const did = (CASES[pool] as Case).count(name)
  const said = `${name}, ${why}, seed ${seed}: ${node.state} ${node.error_message ?? ''}`
  // Repeatable work is done in the end, once; for the rest nobody claims more than they know.
  if (pool === 'git') expect(node.state, said).toBe('succeeded')
  if (node.state === 'succeeded') expect(did, said).toBe(1)
  if (node.state === 'failed') expect(did, said).toBe(0)
  expect(did, said).toBeLessThanOrEqual(1)
  return { pool, name, did, state: node.state as string }
}

const strike = async (pool: string, victim: 'runner' | 'tool', name: string, dice: Dice) => {
  const { count, program } = CASES[pool] as Case
  // At a moment of the whole act, or of the part after its effect, where a wrong claim does most harm.
  const late = pool !== 'git' && dice.between(0, 1) < 0.6
  const wait = dice.between(0, late ? 800 : (LONGEST_MS[pool] ?? 0))
  const path = await startCase(pool, name)
  if (late) await until(() => count(name) > 0, { timeout_ms: 60_000, what: `the effect of ${name}` })
  await delay(wait)
  const agent = agentOf(pool)
  if (victim === 'tool') killTool(agent, program())
  else {
    agent.child.kill('SIGKILL')
    await agent.ended
    start(pool)
  }
  return endOf(
    pool,
    path,
    name,
    `its ${victim} killed ${Math.round(wait)} ms after ${late ? 'the effect' : 'the start'}`,
  )
}

it(
  'a runner or tool killed at any moment never has an effect twice, and never claims a missing one',
  async () => {
    const found: Awaited<ReturnType<typeof endOf>>[] = []
    const dice = createDice(seed)
    for (let round = 0; round < rounds; round++) {
      // Two at a time: they share the machine with other tests.
      for (const pair of [
        ['tofu', 'ssh'],
        ['ansible', 'git'],
      ]) {
        const [first, second] = dice.between(0, 1) < 0.5 ? (['runner', 'tool'] as const) : (['tool', 'runner'] as const)
        const struck = pair.map((pool, i) => {
          const victim = i === 0 ? first : second
          return strike(pool, victim, `${pool}-${victim}-${round}`, dice)
        })
        found.push(...(await Promise.all(struck)))
      }
    }
    for (const { pool, name, did } of found) expect((CASES[pool] as Case).count(name), name).toBe(did)
  },
  60_000 + rounds * 180_000,
)

it(
  'a worker killed while the tools act: each effect happens once, and the next worker gets the results',
  async () => {
    const dice = createDice(seed)
    for (let round = 0; round < rounds; round++) {
      const started: [string, string, string][] = []
      for (const pool of Object.keys(CASES)) {
        const name = `${pool}-worker-${round}`
        started.push([pool, name, await startCase(pool, name)])
      }
      await delay(dice.between(0, 1000))
      await lab.replaceWorker()
      for (const [pool, name, path] of started)
        expect(await endOf(pool, path, name, 'the worker killed')).toMatchObject({ state: 'succeeded', did: 1 })
    }
  },
  60_000 + rounds * 180_000,
)
