import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { CLI } from '../support/cli.ts'
import { until } from '../support/until.ts'
import { type Acts, type Case, descendants, startActs } from './support/acts.ts'
import { type Agent, exitOf } from './support/agent.ts'
import { locateBwrap } from './support/tools.ts'

/** Jobs in namespaces of their own, made by the real bubblewrap: their view of the machine, and their end. */
let acts: Acts
let file: Record<string, unknown>
let agent: Agent
const walled = { destinations: [], secrets: [], mode: 'nats', agents: ['machine:runner'], max_in_flight: 4 }
const DOCTOR = new URL('../../apps/cli/agent/doctor.ts', import.meta.url).href
const args = { type: 'array', items: { type: 'string' } }
beforeAll(async () => {
  acts = await startActs({ sandboxed: true, more: { walled: { ...walled, min_sandbox: 'bwrap' } } })
  const { lab } = acts
  const place = lab.place('effects')
  const kept = lab.place('effects/kept')
  lab.write('key', 'a-key-of-the-cloud')
  const program = (name: string, text: string) => [name, { path: lab.script(name, text), args }] as const
  file = {
    ...{
      pools: ['walled'],
      uid: 1500,
      concurrency: 2,
      sandbox: { bwrap: await locateBwrap(lab.folder), write: [place], read: [kept] },
    },
    credentials: { cloud: { jobs: ['command'], env: { CLOUD_KEY: { file: `${lab.folder}/key` } } } },
    programs: Object.fromEntries([
      program(
        'look',
        `cat ${lab.folder}/key ${lab.folder}/state/seal.key /etc/shadow; ls /etc/signalbox ${lab.folder}; ls /etc/ssl /etc/pki/tls
echo "sees $(ls /proc | grep -c '^[0-9]') processes"; touch /usr/mine /mine /srv/mine ${kept}/mine; mount -o remount,bind,rw /usr && echo mounted; touch "$HOME/own" && echo at home
echo did >> ${place}/look-$(id -u); echo '{"text": "out"}' > "$SIGNALBOX_OUTPUTS"`,
      ),
      // As behind a link of /usr that leads out of it.
      ['linked', { path: `/usr/..${lab.script('linked', `echo '{"text": "linked"}' > "$SIGNALBOX_OUTPUTS"`)}`, args }],
      program('stray', `setsid sh -c 'echo begun >> ${place}/stray; exec sleep 300' & sleep 300`),
      program('tidy', `trap 'echo told >> ${place}/tidy; exit 3' INT; echo begun >> ${place}/tidy; sleep 300 & wait`),
      program('deaf', `trap '' INT; echo begun >> ${place}/deaf; while :; do sleep 1; done`),
    ]),
  }
  agent = lab.startAgent(file)
}, 300_000)
afterAll(() => acts?.stop(), 120_000)

const job = (program: string, timeouts = { run_s: 60, heartbeat_s: 5 }, more = {}) => ({
  ...{ node_id: program, executor: 'external', pool: 'walled', timeouts, outputs: { text: '/text' } },
  with: { job: 'command', inputs: { program, args: [], credentials: 'cloud' }, ...more },
})
const begun = (name: string) => until(() => acts.effects(name) > 0, { what: `${name} begun: ${agent.said()}` })
const examined = (document: object): Promise<{ code: unknown; said: string }> => {
  const { lab } = acts
  lab.write('doctor.json', JSON.stringify({ format: 'signalbox/agent@1', state_dir: lab.place('state'), ...document }))
  const env = { PATH: process.env.PATH, HOME: lab.folder, SIGNALBOX_URL: lab.front_url }
  const argv = [...CLI, 'agent', 'doctor', '--file', join(lab.folder, 'doctor.json')]
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      argv,
      { env: { ...env, SIGNALBOX_TOKEN: lab.p.tokenOf(lab.runner) } },
      (error, stdout, stderr) => resolve({ code: error?.code ?? 0, said: stdout + stderr }),
    )
  })
}
const allGone = (pids: number[]) => until(() => pids.every((pid) => !existsSync(`/proc/${pid}`)), { what: 'their end' })

it.each([1500, 0])(
  'a job of uid %i sees its own folder and the listed paths, and no key, no other process, no other place to write',
  async (uid) => {
    const { lab } = acts
    const labels = { as: `user-${uid}` }
    const other = lab.startAgent({ ...file, uid, labels, name: labels.as })
    const path = await lab.start(job('look', undefined, { labels }))
    expect((await lab.reaches(path, 'succeeded', 'look')).outputs).toEqual({ text: 'out' })
    other.child.kill('SIGTERM')
    await other.ended
    const { text: log } = await lab.p.as('vic').get(`${path}/nodes/look/logs`)
    expect(log).toContain('at home')
    // bwrap, the shell, and the two of the pipe.
    expect(log).toMatch(/sees [2-6] processes/)
    for (const name of ['key', 'seal.key', '/etc/shadow', '/etc/signalbox'])
      expect(log).toMatch(new RegExp(`${name}'?: No such file`))
    for (const name of ['/usr/mine', '/mine', `${lab.folder}/effects/kept/mine`])
      expect(log).toContain(`'${name}': Read-only file system`)
    expect(log).not.toMatch(/a-key-of|policy\.yaml|mounted|private/)
    expect(acts.effects(`look-${uid}`)).toBe(1)
  },
  180_000,
)

it('a program whose links lead out of /usr runs', async () => {
  const path = await acts.lab.start(job('linked'))
  expect((await acts.lab.reaches(path, 'succeeded', 'linked')).outputs).toEqual({ text: 'linked' })
}, 60_000)

it.each(['tofu', 'ansible', 'ssh', 'git'])(
  '%s does its work in a sandbox',
  async (pool) => {
    const name = `${pool}-walled`
    const path = await acts.startCase(pool, name)
    await acts.lab.reaches(path, 'succeeded', name)
    expect((acts.CASES[pool] as Case).count(name)).toBe(1)
  },
  120_000,
)

it('a cancel interrupts the program, not its sandbox; a deaf one is killed, and its outcome is unknown', async () => {
  const { lab } = acts
  const tidy = await lab.start(job('tidy'))
  const deaf = await lab.start(job('deaf', { run_s: 20, heartbeat_s: 5 }))
  for (const [name, path] of [['tidy', tidy] as const, ['deaf', deaf] as const]) {
    await begun(name)
    await lab.force(path)
  }
  await until(() => acts.effects('tidy') === 2, { what: 'the interrupt' })
  for (const words of ['tidy: failed', 'deaf: unknown'])
    await until(() => agent.said().includes(words), { what: `${words}: ${agent.said()}` })
}, 90_000)

it('a killed program is told from one that failed, and all of a killed agent ends with it', async () => {
  const { lab } = acts
  const path = await lab.start(job('stray'))
  await begun('stray')
  const pids = descendants(agent.child.pid as number)
  expect(pids.length).toBeGreaterThan(3)
  agent.child.kill('SIGKILL')
  await agent.ended
  await allGone(pids)
  agent = lab.startAgent(file)
  await lab.reaches(path, 'outcome_unknown', 'stray')
  const next = await lab.start({ ...job('tidy'), node_id: 'next' })
  await until(() => acts.effects('tidy') === 3, { what: 'it to begin' })
  const inner = descendants(agent.child.pid as number)
  for (const pid of inner.slice(-2)) process.kill(pid, 'SIGKILL')
  const { error_message } = await lab.reaches(next, 'outcome_unknown', 'next')
  expect(error_message).toContain('tidy was killed by SIGKILL')
  await allGone(inner)
}, 120_000)

it('a pool that demands a sandbox gives no work to agents without one, and says so', async () => {
  const { sandbox: _, ...bare } = file
  const other = acts.lab.startAgent({ ...bare, name: 'bare' })
  expect(await exitOf(other)).toBe(7)
  for (const words of ['policy_denied/sandbox_needed', 'The pool "walled" gives work to agents with a sandbox only'])
    expect(other.said()).toContain(words)
  expect(other.said()).toContain('Set `sandbox`')
  const { lab } = acts
  const left = await fetch(`${lab.front_url}/api/v1/pools/walled/work`, {
    method: 'POST',
    body: JSON.stringify({ agent: { name: 'bare', leaves: 'gone' } }),
    headers: { 'content-type': 'application/json', authorization: `Bearer ${lab.p.tokenOf(lab.runner)}` },
  })
  expect(left.status).toBe(204)
}, 60_000)

it('an agent whose sandbox does not start takes no work, and the doctor names the cause', async () => {
  const broken = { ...file, name: 'broken', sandbox: { bwrap: '/bin/false' } }
  const other = acts.lab.startAgent(broken)
  expect(await exitOf(other)).toBe(2)
  expect(other.said()).toContain('/sandbox: The sandbox does not start: /bin/false ended with 1.')
  const sick = await examined({ ...broken, git: { program: '/usr/bin/no-git', repos: {} } })
  expect(sick.code).toBe(5)
  for (const words of ['sandbox: The sandbox does not start', 'git/program: /usr/bin/no-git cannot be run (ENOENT)'])
    expect(sick.said).toContain(`fault ${words}`)
  expect(sick.said).toContain('fault credentials/cloud/env/CLOUD_KEY: other users may read')
  chmodSync(join(acts.lab.folder, 'key'), 0o600)
  const well = await examined(file)
  for (const words of [
    'sandbox: jobs run',
    'credentials/cloud/env/CLOUD_KEY',
    'server: ',
    'clock: ',
    'programs/look: ',
  ])
    expect(well.said).toContain(`ok    ${words}`)
}, 90_000)

it('a program or path that the user of the jobs cannot reach is named by the doctor and at the start', async () => {
  const { lab } = acts
  const closed = join(lab.folder, 'closed')
  mkdirSync(join(closed, 'providers'), { recursive: true, mode: 0o700 })
  const tofu = { program: '/usr/bin/env', sources: { web: { path: lab.folder, state: join(lab.folder, 'no-state') } } }
  const locked = lab.script('locked', 'exit 0')
  chmodSync(locked, 0o700)
  const given = { ...file, tofu, state_dir: closed, programs: { locked: { path: locked, args } } }
  const { said } = await examined(given)
  expect(said).toMatch(/fault tofu\/program: uid 1500 cannot run \/usr\/bin\/env: bwrap: .*closed\/providers/)
  const reason = `programs/locked: uid 1500 cannot run ${locked}: it is not there, or not executable.`
  expect(said).toContain(`fault ${reason}`)
  expect((await examined({ ...given, sandbox: undefined })).said).toContain(`fault ${reason}`)
  expect((await examined({ ...given, state_dir: lab.place('state') })).said).toContain('ok    tofu/program: ')
  const other = lab.startAgent({ ...given, name: 'closed' })
  expect(await exitOf(other)).toBe(2)
  expect(other.said()).toContain(`/sandbox: ${reason}`)
}, 90_000)

it('a repository that is not there ends no agent', async () => {
  const git = { program: '/usr/bin/env', repos: { web: { url: join(acts.lab.folder, 'no-repo.git') } } }
  expect((await examined({ ...file, git })).said).toContain('ok    git/program: /usr/bin/env')
}, 60_000)

it.each(['read', 'write'])(
  'a program behind absolute links in a folder of `%s` is found',
  async (list) => {
    const { lab } = acts
    const folder = lab.place(`linked-${list}`)
    const program = join(folder, 'tool-1.8/tool')
    mkdirSync(join(folder, 'tool-1.8'), { recursive: true })
    writeFileSync(program, '#!/bin/sh\nexit 0\n', { mode: 0o755 })
    symlinkSync(program, join(folder, 'tool'))
    symlinkSync(join(folder, 'tool-1.8'), join(folder, 'current'))
    const programs = {
      file: { path: join(folder, 'tool'), args },
      folder: { path: join(folder, 'current/tool'), args },
    }
    const { bwrap } = file.sandbox as { bwrap: string }
    const { said } = await examined({ ...file, programs, sandbox: { bwrap, [list]: [folder] } })
    for (const [name, { path }] of Object.entries(programs)) expect(said).toContain(`ok    programs/${name}: ${path}`)
  },
  60_000,
)

it('the metadata address is asked as the user of the jobs', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const text = `import { readFileSync } from 'node:fs'
const { answers } = await import(${JSON.stringify(DOCTOR)})
const answered = answers({ host: '127.0.0.1', port: ${port} }, 1500)
let rows = ''
process.nextTick(() => { rows = readFileSync('/proc/net/tcp', 'latin1') })
console.log(JSON.stringify({ answered: await answered, rows, back: process.geteuid() }))`
  const asked = await new Promise<string>((resolve, reject) => {
    const argv = [...CLI.slice(0, -1), '--input-type=module', '-e', text]
    execFile(process.execPath, argv, (error, stdout) => (error ? reject(error) : resolve(stdout)))
  })
  server.close()
  const { answered, rows, back } = JSON.parse(asked)
  expect([answered, back]).toEqual([true, 0])
  const address = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const [row = ''] = rows.split('\n').filter((line: string) => line.trim().split(/\s+/)[2] === address)
  expect(row.trim().split(/\s+/)[7]).toBe('1500')
})
