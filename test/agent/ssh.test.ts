import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startLink } from '../support/link.ts'
import { until } from '../support/until.ts'
import { type Agent, type Lab, startLab } from './support/agent.ts'
import { refused } from './support/refusal.ts'
import { locateSsh, startSshd } from './support/tools.ts'

/** `ssh` against a real sshd: exact arguments, pinned keys, and no program that outlives its connection. */
let lab: Lab
let sshd: Awaited<ReturnType<typeof startSshd>>
let file: Record<string, unknown>
let agent: Agent
const SECRET = 'hunter2-at-the-host'
beforeAll(async () => {
  lab = await startLab(['infra'])
  const effects = lab.place('effects')
  sshd = await startSshd(lab.folder, 'sshd', 'for authorised use only')
  const args = { type: 'array', items: { type: 'string' } }
  const program = (name: string, text: string) => ({ path: lab.script(name, text), args })
  const slow = `trap 'echo "ended" >> ${effects}/"$2"; exit 9' TERM; echo "begun $$" >> ${effects}/"$2"; sleep 60 & wait; echo late >> ${effects}/"$2"`
  file = {
    ...{ pools: ['infra'], uid: process.getuid?.() === 0 ? 65_534 : undefined, concurrency: 4 },
    ssh: {
      ...{ program: await locateSsh(), hosts: ['127.0.0.*', '*.example'], users: [sshd.user] },
      programs: {
        show: program('show', 'shift; for a in "$@"; do printf "<%s>" "$a"; done; cat; exit 0'),
        code: program('code', 'exit "$2"'),
        effect: program('effect', `echo one >> ${effects}/"$2"`),
        slow: program('slow', slow),
        ended: program('ended', `sleep 6 & echo "$$" >> ${effects}/"$2"`),
        deaf: program('deaf', `trap '' TERM; echo "begun $$" >> ${effects}/"$2"; while :; do sleep 1; done`),
        leak: program('leak', `echo "password: ${SECRET}"; head -1 ${sshd.identity}; sed -n 3p ${sshd.identity}`),
      },
    },
    credentials: {
      host: {
        jobs: ['ssh'],
        env: { SIGNALBOX_SSH_KEY: { file: sshd.identity }, PASSWORD: { file: `${lab.folder}/password` } },
      },
    },
  }
  lab.write('password', SECRET)
  agent = lab.startAgent(file)
}, 120_000)
afterAll(async () => {
  sshd?.stop()
  await lab.stop()
})

const effects = (name: string) => lab.linesOf(`effects/${name}`)
const job = (
  program: string,
  args: string[],
  more: Record<string, unknown> = {},
  node: Record<string, unknown> = {},
) => {
  const host = { address: '127.0.0.1', port: sshd.port, user: sshd.user, host_keys: sshd.host_keys }
  const inputs = { program, args, credentials: 'host', ...more, host: { ...host, ...(more.host as object) } }
  const outputs = { exit_code: '/exit_code', stdout: '/stdout' }
  return { node_id: 'job', executor: 'external', pool: 'infra', with: { job: 'ssh', inputs }, outputs, ...node }
}
const runs = (pid: string | undefined): boolean => {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

it('an approved program gets exactly its arguments and its input, and no shell reads them', async () => {
  const corpus = [
    '',
    ' ',
    '$(touch /tmp/no)',
    '`id`',
    `'"'"`,
    '"; id; "',
    '\\',
    '*',
    '~',
    '-n',
    '%s',
    'ä€😀',
    '!!',
    '\t',
    'x'.repeat(9000),
  ]
  const nodes = [job('show', corpus, { stdin: 'in\n$HOME\n' })]
  const policy = { approvals: { groups: [{ group: 'netops', min: 1 }] } }
  const path = await lab.startGraph({ nodes, gates: [{ gate_id: 'go', policy, guards: ['job'] }] })
  await lab.approve(path)
  const node = await lab.reaches(path, 'succeeded')
  expect(node.outputs).toEqual({ exit_code: 0, stdout: `${corpus.map((arg) => `<${arg}>`).join('')}in\n$HOME\n` })
}, 90_000)

it('an exit code counts as its step says, and no secret of the credential comes back', async () => {
  const path = await lab.start(
    job('code', ['3'], {}, { node_id: 'bad' }),
    job('code', ['3'], { exit_codes: [0, 3] }, { node_id: 'good' }),
    job('leak', [], {}, { node_id: 'leak' }),
  )
  const bad = await lab.reaches(path, 'failed', 'bad')
  expect(bad).toMatchObject({ error_class: 'exit_code', error_message: 'code at 127.0.0.1 exited with code 3.' })
  const good = await lab.reaches(path, 'succeeded', 'good').catch((error) => error)
  expect(good.outputs?.exit_code ?? good.message).toBe(3)
  const leak = await lab.reaches(path, 'succeeded', 'leak')
  const log = (await lab.p.as('vic').get(`${path}/nodes/leak/logs`)).text
  for (const text of [log, JSON.stringify(leak.outputs)]) {
    expect(text).toContain('password: •••')
    for (const secret of [SECRET, ...readFileSync(sshd.identity, 'utf8').split('\n').slice(1, 4)])
      expect(text).not.toContain(secret)
  }
}, 90_000)

it("refuses what the agent's file does not list, before any connection", async () => {
  const cases: [Record<string, unknown>, RegExp][] = [
    [job('rm', []), /does not name the program "rm"/],
    [job('effect', ['no'], { host: { address: '10.0.0.1' } }), /names no host "10.0.0.1"/],
    [job('effect', ['no'], { host: { address: '127.0.0.evil.example.org' } }), /names no host/],
    [job('effect', ['no'], { host: { address: '-oProxyCommand=id' } }), /names no host/],
    [job('effect', ['no'], { host: { address: '127x0y0z1' } }), /names no host/],
    [job('effect', ['no'], { host: { user: 'root' } }), /the user "root"/],
    [job('effect', ['no'], { host: { port: 0 } }), /must be a port/],
    [job('effect', ['no', 'a\nb']), /line break/],
  ]
  const path = await lab.start(...cases.map(([node], i) => ({ ...node, node_id: `n${i}` })))
  for (const [i, [, words]] of cases.entries()) {
    const node = await lab.reaches(path, 'failed', `n${i}`)
    expect(node).toMatchObject({ error_class: 'agent_refused', error_message: expect.stringMatching(words) })
  }
  expect(effects('no')).toEqual([])
}, 90_000)

it('a connection that is lost before the program begins is definite; afterwards the outcome is unknown', async () => {
  const closed = await lab.start(job('effect', ['closed'], { host: { port: 1 } }))
  expect(await lab.reaches(closed, 'failed')).toMatchObject({ error_class: 'unreachable' })
  const link = await startLink(`http://127.0.0.1:${sshd.port}`)
  const port = Number(new URL(link.url).port)
  const path = await lab.start(job('slow', ['cut'], { host: { port } }))
  await until(() => effects('cut').length > 0, { what: 'begun' })
  link.cut()
  const node = await lab.reaches(path, 'outcome_unknown')
  expect(node).toMatchObject({
    error_class: 'connection_lost',
    error_message: expect.stringContaining('Check the host'),
  })
  await until(() => effects('cut').includes('ended'), { what: 'the program ended by its host' })
  // The connection is cut after any number of bytes: an attempt reported to have no effect has none.
  const states = new Set<string>()
  for (let bytes = 500; bytes < 9500; bytes += 600) {
    link.mend()
    let seen = 0
    link.watch((_, __, part) => {
      seen += part.length
      if (seen >= bytes) link.cut()
    })
    const name = `cut${bytes}`
    const one = await lab.start(job('effect', [name], { host: { port } }))
    const { state } = await until(
      async () => {
        const now = await lab.nodeOf(one)
        return ['failed', 'succeeded', 'outcome_unknown'].includes(now.state) ? now : undefined
      },
      { timeout_ms: 60_000 },
    )
    states.add(state)
    if (state === 'failed') expect(effects(name)).toEqual([])
    if (state === 'succeeded') expect(effects(name)).toEqual(['one'])
    expect(effects(name).length).toBeLessThan(2)
  }
  expect(states).toContain('failed')
  expect(states.size).toBeGreaterThan(1)
  link.stop()
}, 180_000)

it('a program that outlives its time is ended on the host, and killed if it is deaf', async () => {
  const path = await lab.start(
    job('slow', ['time'], { timeout_s: 3 }, { node_id: 'slow' }),
    job('deaf', ['deaf'], { timeout_s: 3 }, { node_id: 'deaf' }),
  )
  const slow = await lab.reaches(path, 'failed', 'slow')
  expect(slow).toMatchObject({ error_class: 'timeout', error_message: expect.stringContaining('ended on request') })
  expect(effects('time').at(-1)).toBe('ended')
  const deaf = await lab.reaches(path, 'outcome_unknown', 'deaf')
  expect(deaf).toMatchObject({ error_message: expect.stringContaining('ran out of time and was stopped') })
  const [, pid] = effects('deaf')[0]?.split(' ') ?? []
  await until(() => !runs(pid), { what: 'the deaf program gone' })
}, 90_000)

it('a program that has ended before it is cancelled has succeeded, although its connection is still open', async () => {
  const path = await lab.start(job('ended', ['ended']))
  await until(() => effects('ended').length > 0 && !runs(effects('ended')[0]), { what: 'the end of the program' })
  await lab.force(path)
  expect(await lab.reaches(path, 'succeeded')).toMatchObject({ outputs: { exit_code: 0 } })
}, 90_000)

it('if an agent is killed, its programs end on the host, the outcome is unknown, and no one repeats them', async () => {
  const names = ['kill0', 'kill1', 'kill2']
  const path = await lab.start(
    ...names.map((name) => job('slow', [name], {}, { node_id: name, timeouts: { run_s: 20, heartbeat_s: 5 } })),
  )
  await until(() => names.some((name) => effects(name).length > 0), { what: 'begun' })
  agent.child.kill('SIGKILL')
  await agent.ended
  const begun = names.filter((name) => effects(name).length > 0)
  agent = lab.startAgent(file)
  for (const name of begun) {
    await lab.reaches(path, 'outcome_unknown', name)
    expect(effects(name).filter((line) => line.startsWith('begun'))).toHaveLength(1)
    expect(effects(name)).not.toContain('late')
    await until(() => !runs(effects(name)[0]?.split(' ')[1]), { what: `${name} gone` })
  }
}, 120_000)

it('an unknown, changed or missing host key is a definite failure with a reason, and no program starts', async () => {
  const none = await lab.start(job('effect', ['key'], { host: { host_keys: [] } }))
  expect(await lab.reaches(none, 'failed')).toMatchObject({
    ...{ error_class: 'host_key', error_message: expect.stringContaining('No host key of 127.0.0.1 is pinned') },
  })
  const broken = await lab.start(
    job('effect', ['key'], { host: { host_keys: ['ssh-ed25519 AAAA\n* ssh-ed25519 BBBB'] } }),
  )
  expect(await lab.reaches(broken, 'failed')).toMatchObject({ error_class: 'host_key' })
  await sshd.changeKey()
  const changed = await lab.start(job('effect', ['key']))
  await refused(lab, changed, 'job', 'host_key', /does not have a pinned host key: it offers SHA256:.*not started/)
  expect(effects('key')).toEqual([])
}, 90_000)
