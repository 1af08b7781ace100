import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { keepUnsaved } from '../../apps/cli/agent/tofu/unsaved.ts'
import { secretsIn } from '../../apps/cli/agent/tools/credentials.ts'
import { readAgentFile } from '../../apps/cli/agent/tools/file.ts'
import type { Job } from '../../apps/cli/agent/tools/types.ts'
import { maskerOf } from '../../apps/shared/data/mask.ts'
import { until } from '../support/until.ts'
import { type Lab, startLab } from './support/agent.ts'
import { refused } from './support/refusal.ts'

/** Programs that misbehave, run by the agent against running operations, worker and stream. */
let lab: Lab
const CLOUD = () => ({ jobs: ['command'], env: { CLOUD_KEY: { file: `${lab.folder}/key` } } })
const args = { type: 'array', items: { type: 'string' } }
const outputs = (json: string) => `printf '%s' '${json}' > "$SIGNALBOX_OUTPUTS"`
beforeAll(async () => {
  lab = await startLab(['infra'])
  const place = lab.place('effects')
  lab.write('key', 'a-key-of-the-cloud')
  lab.write('profile', '[default]\nregion = eu-central-1\naws_secret_access_key = wJalrXUtnFEMI/K7MDENG\n')
  const program = (name: string, text: string) => [name, { path: lab.script(name, text), args }] as const
  lab.startAgent({
    ...{ pools: ['infra'], concurrency: 4, uid: [1500, 1501, 1502, 1503] },
    credentials: {
      cloud: CLOUD(),
      profile: { jobs: ['command'], files: { AWS_SHARED_CREDENTIALS_FILE: { file: `${lab.folder}/profile` } } },
      narrow: { ...CLOUD(), when: "with.args[0] == 'eu1' && with.args.size() == 1" },
    },
    programs: Object.fromEntries([
      program('binary', `printf 'a\\000b\\n'; sleep 3; ${outputs('{"text": "a\\u0000b\\ud83d"}')}; echo done`),
      // A pair of surrogates lies across the end of the longest line.
      program(
        'smile',
        `printf 'x'; for i in $(seq 17000); do printf '\\360\\237\\230\\200'; done; echo; sleep 3; echo done`,
      ),
      program('deep', outputs(`${'{"a":'.repeat(40)}1${'}'.repeat(40)}`)),
      program('linked', 'ln -s /etc/passwd "$SIGNALBOX_OUTPUTS"'),
      program(
        'reads',
        `f=$AWS_SHARED_CREDENTIALS_FILE; stat -c '%a %u' "$f"; cat "$f"; cut -d= -f2 "$f"; base64 "$f"; cp "$f" ${place}/copy; echo "$f" > ${place}/where; ${outputs('{"text": "in eu-central-1"}')}`,
      ),
      program('holds', `echo "holds \${CLOUD_KEY:+one}"`),
      program('moving', 'touch "$HOME/../mine" || echo kept out; touch "$HOME/own" && echo at home'),
      program('keeps', `echo $$ > ${place}/keeps; echo "$CLOUD_KEY" > "$HOME/kept"; sleep 60`),
      program(
        'snoops',
        `p=$(cat ${place}/keeps); kill "$p" 2>/dev/null && echo killed it
cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep CLOUD_KEY
for one in "$HOME"/../../signalbox-agent-*; do cat "$one/home/kept"; done; echo saw all`,
      ),
      program('stray', `setsid sh -c 'echo $$ > ${place}/stray; exec sleep 60' </dev/null >/dev/null 2>&1 & sleep 1`),
    ]),
  })
}, 90_000)
afterAll(() => lab.stop())

const job = (program: string, values: object = {}) => ({
  node_id: program,
  executor: 'external',
  pool: 'infra',
  with: { job: 'command', inputs: { program, args: [] }, ...values },
  outputs: { text: '/text' },
  timeouts: { run_s: 60, heartbeat_s: 5 },
})
const logOf = async (path: string, node_id: string) => (await lab.p.as('vic').get(`${path}/nodes/${node_id}/logs`)).text

it('text that cannot be stored neither stops its work nor loses its end', async () => {
  const path = await lab.start(job('binary'), { ...job('smile'), outputs: {} })
  const { outputs: made } = await lab.reaches(path, 'succeeded', 'binary')
  expect(made).toEqual({ text: 'a\ufffdb\ufffd' })
  await lab.reaches(path, 'succeeded', 'smile')
  for (const node_id of ['binary', 'smile']) expect(await logOf(path, node_id)).toContain('done')
}, 90_000)

it('outputs that the control plane cannot take fail the node, and say why', async () => {
  const cases: [string, RegExp][] = [
    ['deep', /^The job succeeded, but not its outputs: .*deep/],
    ['linked', /must be a JSON object/],
  ]
  const path = await lab.start(...cases.map(([program]) => job(program)))
  for (const [program, words] of cases)
    expect(await lab.reaches(path, 'failed', program)).toMatchObject({
      error_class: 'outputs_invalid',
      error_message: expect.stringMatching(words),
    })
}, 90_000)

it('a job named like a member of every object is unknown', async () => {
  const path = await lab.start({ ...job('deep', { job: 'constructor' }), node_id: 'job' })
  expect(await lab.reaches(path, 'failed')).toMatchObject({
    error_class: 'agent_refused',
    error_message: 'This agent does not know the job "constructor".',
  })
}, 90_000)

it('a program writes only to its own part of the folder', async () => {
  const path = await lab.start({ ...job('moving'), outputs: {} })
  await lab.reaches(path, 'succeeded', 'moving')
  const log = await logOf(path, 'moving')
  expect(log).toContain('kept out')
  expect(log).toContain('at home')
}, 90_000)

it('a job neither reads nor ends what runs beside it', async () => {
  const kept = job('keeps', { job: 'command', inputs: { program: 'keeps', args: [], credentials: 'cloud' } })
  const path = await lab.start({ ...kept, timeouts: { run_s: 60, heartbeat_s: 5 } })
  const pid = await until(() => lab.linesOf('effects/keeps')[0], { what: 'it to run' })
  const other = await lab.start(job('snoops'))
  await lab.reaches(other, 'succeeded', 'snoops')
  const log = await logOf(other, 'snoops')
  expect(log).toContain('saw all')
  expect(log).toContain('Permission denied')
  // Not even the mask of a value that this job never had.
  expect(log).not.toMatch(/CLOUD_KEY|a-key-of|killed/)
  expect(existsSync(`/proc/${pid}`)).toBe(true)
  await lab.force(path)
}, 90_000)

it('a credential is given only where its condition holds for the inputs', async () => {
  const asks = (...args: string[]) =>
    job('holds', { job: 'command', inputs: { program: 'holds', args, credentials: 'narrow' } })
  const path = await lab.start({ ...asks('eu1'), outputs: {} })
  await lab.reaches(path, 'succeeded', 'holds')
  expect(await logOf(path, 'holds')).toContain('holds one')
  // The condition cannot be evaluated without the first argument.
  for (const args of [['us1'], ['eu1', 'us1'], []]) {
    const other = await lab.start({ ...asks(...args), outputs: {} })
    await refused(lab, other, 'holds', 'agent_refused', /gives the credential "narrow" only where with\.args/)
  }
  const broken = {
    format: 'signalbox/agent@1',
    pools: ['infra'],
    state_dir: '/x',
    uid: 1,
    credentials: { one: { ...CLOUD(), when: 'labels.a' } },
  }
  lab.write('broken.json', JSON.stringify(broken))
  expect(() => readAgentFile(join(lab.folder, 'broken.json'))).toThrow('/credentials/one/when')
}, 90_000)

it('a credential may be a file: only its job reads it, no log shows it, and it goes with the attempt', async () => {
  const inputs = { program: 'reads', args: [], credentials: 'profile' }
  const path = await lab.start(job('reads', { job: 'command', inputs }))
  expect((await lab.reaches(path, 'succeeded', 'reads')).outputs).toEqual({ text: 'in eu-central-1' })
  const log = await logOf(path, 'reads')
  expect(log).toMatch(/600 150\d/)
  expect(log).toContain('•••')
  expect(log).not.toMatch(/wJalr|K7MDENG|d0phbHJY/)
  expect(lab.linesOf('effects/copy')).toContain('aws_secret_access_key = wJalrXUtnFEMI/K7MDENG')
  const [where = ''] = lab.linesOf('effects/where')
  expect(where).toMatch(/signalbox-agent-/)
  await until(() => !existsSync(where), { what: 'the end of the copy' })
}, 90_000)

it('a process that left its group ends with its attempt', async () => {
  const path = await lab.start({ ...job('stray'), outputs: {} })
  await lab.reaches(path, 'succeeded', 'stray')
  const [pid = ''] = lab.linesOf('effects/stray')
  expect(pid).toMatch(/^\d+$/)
  const stat = `/proc/${pid}/stat`
  await until(() => !existsSync(stat) || /\) Z /.test(readFileSync(stat, 'utf8')), { what: 'the end of the process' })
}, 90_000)

it('a state that is kept stays in its folder, whatever the control plane names the node', async () => {
  const state_dir = lab.place('kept')
  lab.write('errored.tfstate', '{}')
  const work = { operation_id: 'o', node_id: '../../../beside', fence: 1 }
  const job = { work, file: { state_dir }, keep: () => Promise.reject(new Error('away')) } as never as Job
  const { message } = (await keepUnsaved(job, join(lab.folder, 'errored.tfstate'), '')) as { message: string }
  expect(message).toContain(`it is ${state_dir}/unsaved/o-.._.._.._beside-1.tfstate on the agent's machine`)
})

it('of a credential file only what is secret is masked', () => {
  const pem = '-----BEGIN PRIVATE KEY-----\\nMIIEvQIBADANBgkqh\\n-----END PRIVATE KEY-----\\n'
  const urls = { token_uri: 'https://oauth2.example.com/token', auth_uri: 'https://accounts.example.com/auth' }
  const account = { type: 'service_account', project_id: 'acme-prod-1', ...urls, private_key: '' }
  const google = JSON.stringify(account, null, 2).replace('"private_key": ""', `"private_key": "${pem}"`)
  const cluster = 'clusters:\n- cluster:\n    server: https://k8s.example.com:6443\n  name: prod-cluster'
  const cases: [file: string, secret: string[], open: string[]][] = [
    [google, ['MIIEvQIBADANBgkqh'], ['acme-prod-1', 'service_account', ...Object.values(urls)]],
    [google.replace(/\n\s*/g, ''), ['MIIEvQIBADANBgkqh'], ['acme-prod-1', ...Object.values(urls)]],
    [
      `apiVersion: v1\nkind: Config\n${cluster}\nusers:\n- name: admin-prod\n  user:\n    token: eyJhbGciOiJSUzI1NiIs\n    client-key-data: LS0tLS1CRUdJTi\n`,
      ['eyJhbGciOiJSUzI1NiIs', 'LS0tLS1CRUdJTi'],
      ['apiVersion: v1', 'kind: Config', 'https://k8s.example.com:6443', 'prod-cluster', 'admin-prod', 'clusters:'],
    ],
    ['DATABASE_URL=postgres://app:s3cret-word@db/app\nDB_NAME=inventory\n', ['s3cret-word'], ['inventory', 'postgres']],
    ['DB_PASS=correct horse battery\nAPI_TOKEN=abcdefgh12 # of eu\n', ['correct horse battery', 'abcdefgh12'], []],
    ['hunter2\n', ['hunter2'], []],
    ['first-password\nsecond-password\n', ['first-password', 'second-password'], []],
    ['-----BEGIN CERTIFICATE-----\nMIIDazCCAlOgAwIB\n-----END CERTIFICATE-----\n', [], ['MIIDazCCAlOgAwIB']],
    [
      '-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\nabcdefg123==\n',
      ['MIIEowIBAAKCAQEA', 'abcdefg123=='],
      ['-----BEGIN '],
    ],
  ]
  for (const [file, secret, open] of cases) {
    const mask = maskerOf(secretsIn({ env: {}, files: { FILE: Buffer.from(file) } }))
    for (const word of secret) expect(mask(`a ${word} b`)).toBe('a ••• b')
    for (const word of open) expect(mask(`a ${word} b`)).toBe(`a ${word} b`)
  }
})
