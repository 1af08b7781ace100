import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { must } from '../operations/support/platform.ts'
import { until } from '../support/until.ts'
import { type Agent, type Lab, startLab } from './support/agent.ts'
import { contained, refused } from './support/refusal.ts'
import { locateAnsible, startSshd } from './support/tools.ts'

/** ansible-playbook over a real sshd: a forecast in check mode, the run, and each host separately. */
let lab: Lab
let sshd: Awaited<ReturnType<typeof startSshd>>
let file: Record<string, unknown>
let agent: Agent
const SECRET = 'hunter2-in-a-task'
const TEMPLATE = "{{ lookup('pipe', 'touch PWNED') }}"
const playbook = (tasks: string) => `- hosts: all\n  gather_facts: false\n  tasks:\n${tasks}`
const task = (name: string, module: string, args: unknown, more = '') =>
  `    - name: ${name}\n      ${module}: ${JSON.stringify(args)}\n${more}`
beforeAll(async () => {
  lab = await startLab(['infra'])
  sshd = await startSshd(lab.folder)
  const program = await locateAnsible()
  const effects = lab.place('effects')
  const web = lab.place('web')
  const dest = (name: string) => `${effects}/{{ inventory_hostname }}-${name}`
  const site = [
    task('config', 'ansible.builtin.copy', { dest: dest('conf'), content: 'port {{ port }}\nsecret {{ word }}\n' }),
    task('hidden', 'ansible.builtin.copy', { dest: dest('key'), content: `${SECRET}-key` }, '      no_log: true\n'),
    task('count', 'ansible.builtin.shell', `echo {{ text | quote }} >> ${dest('count')}`),
    task('never', 'ansible.builtin.command', 'false', '      when: false\n'),
  ]
  writeFileSync(join(web, 'site.yml'), playbook(site.join('')))
  writeFileSync(
    join(web, 'hang.yml'),
    playbook(
      task('hang', 'ansible.builtin.shell', `echo begun >> ${dest('hang')}; sleep 90; echo late >> ${dest('hang')}`),
    ),
  )
  writeFileSync(
    join(web, 'big.yml'),
    playbook(task('big', 'ansible.builtin.copy', { dest: dest('big'), src: 'big.txt' })),
  )
  writeFileSync(
    join(web, 'spill.yml'),
    playbook(task('spill', 'ansible.builtin.fail', { msg: `${'x'.repeat(175)}{{ word }}` })),
  )
  const linked = lab.place('linked')
  for (const at of [lab.folder, linked]) writeFileSync(join(at, 'site.yml'), playbook(site.join('')))
  symlinkSync('site.yml', join(linked, 'inside.yml'))
  symlinkSync('../site.yml', join(linked, 'outside.yml'))
  // By its text alone this link stays inside.
  const around = lab.place('around')
  mkdirSync(join(around, 'a/b'), { recursive: true })
  symlinkSync('../..', join(around, 'a/b/up'))
  symlinkSync(`${'a/b/up/'.repeat(5)}${'../'.repeat(12)}etc/passwd`, join(around, 'outside.yml'))
  writeFileSync(join(around, 'site.yml'), playbook(site.join('')))
  writeFileSync(join(web, 'broken.yml'), '- hosts: [\n')
  writeFileSync(
    join(web, 'half.yml'),
    playbook(
      task('half', 'ansible.builtin.shell', `test {{ inventory_hostname }} = web1 && echo one >> ${dest('half')}`),
    ),
  )
  const mended = `test {{ inventory_hostname }} = web1 -o -e ${effects}/{{ inventory_hostname }}-fixed && echo {{ sealed }} >> ${dest('mended')}`
  writeFileSync(
    join(web, 'mended.yml'),
    playbook(task('mended', 'ansible.builtin.shell', mended)).replace('tasks:', 'vars_files: [sealed.yml]\n  tasks:'),
  )
  lab.write('vault', 'the-password-of-the-vault')
  const encrypt = ['encrypt_string', '--vault-password-file', `${lab.folder}/vault`, 'one', '--name', 'sealed']
  writeFileSync(join(web, 'sealed.yml'), execFileSync(join(dirname(program), 'ansible-vault'), encrypt))
  const early = [
    task('first', 'ansible.builtin.command', 'test {{ inventory_hostname }} = web1'),
    task('late', 'ansible.builtin.shell', `echo late >> ${dest('late')}`),
  ]
  for (const [name, how] of [
    ['serial', 'serial: 1\n  order: reverse_inventory'],
    ['fatal', 'any_errors_fatal: true'],
  ])
    writeFileSync(join(web, `${name}.yml`), playbook(early.join('')).replace('gather_facts', `${how}\n  gather_facts`))
  const plays = [
    ['web2', task('first', 'ansible.builtin.command', `test -e ${dest('up')}`)],
    ['web1', task('second', 'ansible.builtin.shell', `echo one >> ${dest('second')}`)],
  ] as const
  const several = plays.map(([host, tasks]) => playbook(tasks).replace('hosts: all', `hosts: ${host}`)).join('')
  writeFileSync(join(web, 'several.yml'), several)
  // By default the tool shows no diffs of this size.
  writeFileSync(join(web, 'ansible.cfg'), '[defaults]\nmax_diff_size = 100000000\n')
  chmodSync(web, 0o755)
  const lines = Array.from({ length: 100_000 }, (_, i) => (i === 2 ? `a ${SECRET}` : `${i} ${'x'.repeat(95)}`))
  writeFileSync(join(web, 'big.txt'), lines.join('\n'))
  lab.write('password', SECRET)
  file = {
    ...{ pools: ['infra'], uid: 0, concurrency: 3 },
    ansible: {
      program,
      hosts: ['127.0.*'],
      sources: {
        web: { path: web, vars: { ansible_python_interpreter: '/usr/bin/python3' } },
        linked: { path: linked },
        around: { path: around },
      },
    },
    credentials: {
      host: {
        jobs: ['ansible.preview', 'ansible.run'],
        env: { SIGNALBOX_SSH_KEY: { file: sshd.identity }, PASSWORD: { file: `${lab.folder}/password` } },
        files: { ANSIBLE_VAULT_PASSWORD_FILE: { file: `${lab.folder}/vault` } },
      },
    },
  }
  agent = lab.startAgent(file)
}, 300_000)
afterAll(async () => {
  sshd?.stop()
  await lab.stop()
}, 120_000)

const host = (more: object = {}) => ({
  ...{ address: '127.0.0.1', port: sshd.port, user: sshd.user, host_keys: sshd.host_keys, vars: { port: 80 } },
  ...more,
})
const inputsOf = (more: object = {}) => ({
  ...{ source: 'web', playbook: 'site.yml', credentials: 'host', extra_vars: { word: SECRET, text: TEMPLATE } },
  ...{ inventory: { hosts: { web1: host(), web2: host({ vars: { port: 81 } }) }, groups: { webs: ['web1', 'web2'] } } },
  ...more,
})
const node = (node_id: string, job: string, inputs: object, outputs: string[], more: object = {}) => ({
  // A run that ends in seconds elsewhere takes more than a minute on a busy machine.
  ...{ node_id, executor: 'external', pool: 'infra', with: { job, inputs }, timeouts: { run_s: 300 } },
  ...{ outputs: Object.fromEntries(outputs.map((name) => [name, `/${name}`])), ...more },
})
const policy = { approvals: { groups: [{ group: 'netops', min: 1 }] } }
const change = (inputs: object) => ({
  nodes: [
    node('plan', 'ansible.preview', inputs, ['preview']),
    node('run', 'ansible.run', { ...inputs, preview: { $from: 'nodes/plan/outputs/preview' } }, ['hosts'], {
      depends_on: ['plan'],
    }),
  ],
  gates: [{ gate_id: 'go', policy, guards: ['run'] }],
})
const text = (name: string) => readFileSync(join(lab.folder, 'effects', name), 'utf8')
const logOf = async (path: string, id: string) => (await lab.p.as('vic').get(`${path}/nodes/${id}/logs`)).text as string
type Bound = { changes: { id: string; fields: object[] }[]; unforeseen: string[]; binding: string }
const boundOf = (gate: { subject: { bound_outputs: { value: Bound }[] } }) => gate.subject.bound_outputs[0]?.value

it('forecasts each task of each host without a change, then runs it; no secret and no template leaks', async () => {
  const path = await lab.startGraph(change(inputsOf()))
  const gate = await lab.waiting(path)
  expect(
    ['web1-conf', 'web1-key', 'web1-count'].filter((name) => existsSync(join(lab.folder, 'effects', name))),
  ).toEqual([])
  const bound = boundOf(gate)
  expect(bound).toMatchObject({ binding: 'forecast', counts: { update: 4 } })
  expect(bound?.changes.find(({ id }) => id === 'web2: config')?.fields).toEqual([
    { path: '/line 0', after: 'port 81\nsecret •••' },
  ])
  expect(bound?.changes.find(({ id }) => id === 'web1: hidden')?.fields).toEqual([{ path: '/result', sensitive: true }])
  expect(bound?.unforeseen).toHaveLength(2)
  expect(bound?.unforeseen[0]).toMatch(/web\d: count/)
  await lab.approve(path)
  const run = await lab.reaches(path, 'succeeded', 'run')
  const counts = { ok: 3, changed: 3, failed: 0, unreachable: 0, skipped: 1 }
  expect(run.outputs.hosts).toEqual({ web1: counts, web2: counts })
  expect(text('web1-conf')).toBe(`port 80\nsecret ${SECRET}\n`)
  expect(text('web2-count')).toBe(`${TEMPLATE}\n`)
  for (const name of ['plan', 'run']) {
    const log = await logOf(path, name)
    expect(log).toContain('web1: config: changed')
    expect(log).not.toContain(SECRET)
  }
  expect(JSON.stringify(bound)).not.toContain(SECRET)
  const again = await lab.startGraph(change(inputsOf()))
  expect(boundOf(await lab.waiting(again))?.changes.map(({ id }) => id)).toEqual([])
  // Three plays, each with several connections for a task and host.
}, 360_000)

it('a source that changed after the approval is stale, and nothing runs', async () => {
  const path = await lab.startGraph(change(inputsOf({ playbook: 'half.yml', limit: ['web1'] })))
  await lab.waiting(path)
  writeFileSync(join(lab.folder, 'web/extra.yml'), '')
  await lab.approve(path)
  await refused(lab, path, 'run', 'preview_stale', 'source files')
  expect(existsSync(join(lab.folder, 'effects/web1-half'))).toBe(false)
}, 120_000)

it('a diff of 10 MB is shown in part, with its size and digest, and still masked', async () => {
  const path = await lab.startGraph(change(inputsOf({ playbook: 'big.yml', limit: ['web1'] })))
  const [first] = boundOf(await lab.waiting(path))?.changes ?? []
  expect(first).toMatchObject({ id: 'web1: big', digest: expect.stringMatching(/^sha256:/) })
  const [field] = (first?.fields ?? []) as { after: string }[]
  expect(field?.after).toMatch(/… \(\d{8} characters\)$/)
  expect(field?.after).toContain('a •••')
  expect(field?.after.length).toBeLessThan(500)
  await contained(lab, path, 'run', [SECRET])
}, 120_000)

it('hosts fail one by one: a refused key, a closed port and a failing task are named, the others are done', async () => {
  const hosts = {
    web1: host(),
    web2: host(),
    gone: host({ port: 1 }),
    forged: host({ host_keys: [sshd.other_key], address: '127.0.0.2' }),
  }
  const inputs = inputsOf({ playbook: 'half.yml', inventory: { hosts } })
  const path = await lab.start(node('strict', 'ansible.run', inputs, ['hosts']))
  const failed = await lab.reaches(path, 'failed', 'strict')
  expect(failed.error_class).toBe('hosts_failed')
  for (const words of ['Failed hosts: 3 of 4', 'web2 failed at "half"', 'gone unreachable', 'forged unreachable'])
    expect(failed.error_message).toContain(words)
  expect(text('web1-half')).toBe('one\n')
  expect(failed.outputs.hosts).toMatchObject({ web1: { ok: 1 }, web2: { failed: 1 }, gone: { unreachable: 1 } })
  const lenient = await lab.start(node('lenient', 'ansible.run', { ...inputs, max_failures: 3 }, ['hosts']))
  const { outputs } = await lab.reaches(lenient, 'succeeded', 'lenient')
  expect(outputs.hosts).toMatchObject({
    web1: { ok: 1 },
    web2: { failed: 1 },
    gone: { unreachable: 1 },
    forged: { unreachable: 1 },
  })
}, 180_000)

it('a retry runs only the hosts that failed; once the preview is made again, all of them', async () => {
  const three = { web1: host(), web2: host(), web3: host() }
  const path = await lab.startGraph(change(inputsOf({ playbook: 'mended.yml', inventory: { hosts: three } })))
  await lab.approve(path)
  const retry = async (name: string) =>
    must(await lab.p.as('olga').post(`${path}/nodes/${name}/retry`, { reason: 'mended' }), 200, 202)
  const failed = (attempt: number) =>
    until(
      async () => {
        const node = await lab.nodeOf(path, 'run')
        return node.state === 'failed' && node.attempt === attempt && node
      },
      { timeout_ms: 110_000, what: `the failure of attempt ${attempt}` },
    )
  const hosts = ({ outputs }: { outputs: { hosts: object } }) => Object.keys(outputs.hosts).sort()
  const first = await failed(1)
  expect(first.error_message).toMatch(/A retry runs only these hosts\.$/)
  expect(hosts(first)).toEqual(['web1', 'web2', 'web3'])
  writeFileSync(join(lab.folder, 'effects/web2-fixed'), '')
  await retry('run')
  expect(hosts(await failed(2))).toEqual(['web2', 'web3'])
  await retry('plan')
  await lab.approve(path)
  expect(hosts(await failed(3))).toEqual(['web1', 'web2', 'web3'])
  writeFileSync(join(lab.folder, 'effects/web3-fixed'), '')
  await retry('run')
  expect(hosts(await lab.reaches(path, 'succeeded', 'run'))).toEqual(['web3'])
  expect(await logOf(path, 'run')).toContain('Only the hosts that the last attempt left: web3.')
  expect(['web1', 'web2', 'web3'].map((name) => text(`${name}-mended`))).toEqual(['one\none\n', 'one\none\n', 'one\n'])
}, 240_000)

it('a playbook of which a play did not begin has not succeeded, and its retry runs all plays', async () => {
  const inputs = inputsOf({ playbook: 'several.yml', max_failures: 1 })
  const path = await lab.start(node('several', 'ansible.run', inputs, ['hosts']))
  const failed = await lab.reaches(path, 'failed', 'several')
  expect(failed.error_message).toMatch(/^Failed hosts: 1 of 1\. .* Plays that did not begin: 1\.$/s)
  writeFileSync(join(lab.folder, 'effects/web2-up'), '')
  must(await lab.p.as('olga').post(`${path}/nodes/several/retry`, { reason: 'mended' }), 200, 202)
  const { outputs } = await lab.reaches(path, 'succeeded', 'several')
  expect(Object.keys(outputs.hosts).sort()).toEqual(['web1', 'web2'])
  expect(text('web1-second')).toBe('one\n')
}, 120_000)

it('without a preview, a retry runs all hosts if the source has changed', async () => {
  const run = node('run', 'ansible.run', inputsOf({ playbook: 'half.yml' }), ['hosts'])
  const path = await lab.start(run)
  expect((await lab.reaches(path, 'failed', 'run')).error_message).toMatch(/A retry runs only these hosts\.$/)
  writeFileSync(join(lab.folder, 'web/half.yml'), playbook(task('whole', 'ansible.builtin.command', 'true')))
  must(await lab.p.as('olga').post(`${path}/nodes/run/retry`, { reason: 'mended' }), 200, 202)
  const { outputs } = await lab.reaches(path, 'succeeded', 'run')
  expect(Object.keys(outputs.hosts).sort()).toEqual(['web1', 'web2'])
}, 120_000)

it('a play that ends early has not succeeded, however many failures are allowed', async () => {
  for (const [playbook, words] of [
    ['serial.yml', 'Hosts not reached: web1.'],
    ['fatal.yml', 'The play ended early'],
  ]) {
    const inputs = inputsOf({ playbook, max_failures: 1 })
    const path = await lab.start(node('early', 'ansible.run', inputs, ['hosts']))
    const failed = await lab.reaches(path, 'failed', 'early')
    expect(failed).toMatchObject({
      error_class: 'hosts_failed',
      error_message: expect.stringContaining('web2 failed at'),
    })
    expect(failed.error_message).toContain(words)
    expect(existsSync(join(lab.folder, 'effects/web1-late'))).toBe(false)
  }
}, 120_000)

it('a playbook that hangs is stopped and names the running task; after a killed agent the outcome is unknown', async () => {
  const inputs = inputsOf({ playbook: 'hang.yml', limit: ['web1'], timeout_s: 15 })
  const path = await lab.start(node('hang', 'ansible.run', inputs, ['hosts'], { timeouts: { run_s: 100 } }))
  const hung = await refused(lab, path, 'hang', 'timeout', '"hang" on web1', 'outcome_unknown')
  // By its own timeout, long before the end of the attempt.
  expect(Date.parse(hung.ended_at) - Date.parse(hung.started_at)).toBeLessThan(60_000)
  expect(text('web1-hang')).toBe('begun\n')
  const timeouts = { run_s: 90, heartbeat_s: 5 }
  const other = await lab.start(
    node('kill', 'ansible.run', { ...inputs, limit: ['web2'], timeout_s: 60 }, ['hosts'], { timeouts }),
  )
  await until(() => existsSync(join(lab.folder, 'effects/web2-hang')), { what: 'begun' })
  agent.child.kill('SIGKILL')
  await agent.ended
  agent = lab.startAgent(file)
  await lab.reaches(other, 'outcome_unknown', 'kill')
  expect(text('web2-hang')).toBe('begun\n')
}, 180_000)

it("refuses variables, hosts and playbooks that reach beyond the agent's file, and a playbook that ansible cannot read", async () => {
  const inventory = (hosts: object, groups = {}) => ({ inventory: { hosts, groups } })
  const cases: [object, RegExp, string?][] = [
    [{ source: 'db' }, /names no source "db"/],
    [{ playbook: '../other.yml' }, /must be the path of a .yml/],
    [{ playbook: '/etc/site.yml' }, /must be the path of a .yml/],
    [{ playbook: 'none.yml' }, /has no playbook/],
    [{ extra_vars: { ansible_connection: 'local' } }, /cannot set the variable "ansible_connection"/],
    [inventory({ web1: host({ vars: { ansible_ssh_common_args: '-oProxyCommand=id' } }) }), /cannot set the variable/],
    [inventory({ web1: host({ address: '-oProxyCommand=id' }) }), /no valid address/],
    [inventory({ web1: host(), web2: host({ address: '10.127.0.1' }) }), /names no host "10\.127\.0\.1" for playbooks/],
    [inventory({ web1: host({ user: '-x' }) }), /user of "web1"/],
    [inventory({ web1: host({ host_keys: ['ssh-ed25519 x\n* ssh'] }) }), /not a public key/],
    [inventory({ web1: host() }, { all: ['web1'] }), /not a group name/],
    [inventory({ web1: host() }, { webs: ['web9'] }), /"web9" is not one/],
    [inventory({ web: host(), db: host() }, { web: ['db'] }), /"web" is a host and a group/],
    [inventory({ all: host() }), /"all" is not a host name/],
    [inventory({ ungrouped: host() }), /"ungrouped" is not a host name/],
    [{ limit: ['all'] }, /"limit" must be a list/],
    [{ limit: [] }, /"limit" must be a list/],
    [{ playbook: '-evars.yml' }, /must be the path of a .yml/],
    [{ source: 'constructor' }, /names no source "constructor"/],
    [inventory({ web1: host() }, { webs: ['constructor'] }), /"constructor" is not one/],
    [{ source: 'linked' }, /The link "outside\.yml" leads out of the source "linked"/],
    [{ source: 'around' }, /The link "outside\.yml" leads out of the source "around"/],
    [{ credentials: 'constructor' }, /to use the credential "constructor"/],
    [{ playbook: 'spill.yml' }, /^(?!.*hunter2).*"spill": x+/s, 'hosts_failed'],
    [{ playbook: 'broken.yml' }, /ansible-playbook failed: .*No change was made/s, 'tool_failed'],
  ]
  const path = await lab.start(
    ...cases.map(([more], i) => node(`n${i}`, 'ansible.preview', inputsOf(more), ['preview'])),
  )
  for (const [i, [, words, kind = 'agent_refused']] of cases.entries())
    expect(await lab.reaches(path, 'failed', `n${i}`)).toMatchObject({
      error_class: kind,
      error_message: expect.stringMatching(words),
    })
}, 120_000)
