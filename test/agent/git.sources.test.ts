import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Approved, takeSource } from '../../apps/cli/agent/tools/checkout.ts'
import { credentialOf } from '../../apps/cli/agent/tools/credentials.ts'
import { type Checkout, readAgentFile } from '../../apps/cli/agent/tools/file.ts'
import { copySource } from '../../apps/cli/agent/tools/source.ts'
import type { Job } from '../../apps/cli/agent/tools/types.ts'
import { createScreen } from '../../apps/platform/base/screen.ts'
import { maskerOf } from '../../apps/shared/data/mask.ts'
import { locateTofu } from '../support/tofu.ts'
import { type Lab, startLab } from './support/agent.ts'
import { executedIn, exportOf } from './support/refusal.ts'
import { locateGit } from './support/tools.ts'

/** Sources in a repository: a preview takes the head of a listed branch, and its run the same commit. */
let lab: Lab
let program: string
let work: string
const SECRET = 'hunter2-of-the-job'
const TOKEN = 'token-of-the-reader'
const SKIPPED = /^(\.git|.*\.tfstate)$/
const module = (size: number) => `resource "terraform_data" "disk" {\n  input = ${size}\n}\n`

const git = (...args: string[]): string =>
  execFileSync(program, ['-C', work, '-c', 'user.name=T', '-c', 'user.email=t@t', ...args], {
    encoding: 'utf8',
    env: { PATH: process.env.PATH, HOME: lab.folder, GIT_CONFIG_GLOBAL: '/dev/null' },
  }).trim()
/** Makes a commit with these files on a branch that begins at main, and returns its name. */
const commit = (branch: string, files: Record<string, string>): string => {
  git('checkout', '-q', ...(git('branch', '--list', branch) === '' ? ['-b', branch, 'main'] : [branch]))
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(work, name)), { recursive: true })
    writeFileSync(join(work, name), text)
  }
  git('add', '-A')
  return made()
}
const made = (): string => {
  git('commit', '-q', '-m', 'by hand')
  return git('rev-parse', 'HEAD')
}

beforeAll(async () => {
  lab = await startLab(['infra'])
  program = await locateGit()
  work = lab.place('work')
  git('init', '-q', '-b', 'main')
  writeFileSync(join(work, 'README.md'), 'one\n')
  git('add', '-A')
  git('commit', '-q', '-m', 'first')
  commit('main', { 'infra/main.tf': module(1), 'infra/ä b.txt': 'x\n', 'infra/terraform.tfstate': '{}' })
}, 300_000)
afterAll(() => lab.stop())

type Found = Partial<Checkout>
const folders: string[] = []
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true })
})
/** An attempt as the agent prepares it. */
const attempt = (inputs: object, more: object = {}) => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-checkout-'))
  folders.push(folder)
  const home = join(folder, 'home')
  mkdirSync(home)
  const said: string[] = []
  const file = { git: { program, repos: { web: { url: join(work, '.git') } } }, ...more }
  const job = {
    ...{ file, work: { inputs }, folder, home, executed: {}, signal: new AbortController().signal, mask: maskerOf([]) },
    ...{ env: { PATH: process.env.PATH ?? '', HOME: home, TMPDIR: home, LANG: 'C.UTF-8', SECRET } },
    ...{ log: (text: string) => said.push(text), stored: async () => {}, began: () => {} },
    ...{ left_ms: () => 20_000, own_ms: () => Infinity },
  } as never as Job
  const take = (found: Found = {}, preview?: Approved) => {
    const source = { repo: 'web', refs: ['main', 'release/*'], path: 'infra', ...found }
    return takeSource(job, { name: 'web', found: source, skipped: SKIPPED }, join(folder, 'source'), preview)
  }
  const read = (name: string) => readFileSync(join(folder, 'source', name), 'utf8')
  return { job, folder, said, take, read }
}
const approved = (hash: string, ref = 'main'): Approved => ({ source: { repo: 'web', ref, commit: hash } })
const refuses = (taken: Promise<unknown>, kind: string, words: RegExp) =>
  expect(taken).rejects.toMatchObject({ verdict: { class: kind, message: expect.stringMatching(words) } })

it('takes the files of a folder at the head of the branch, and leaves no history', async () => {
  const head = git('rev-parse', 'main')
  const one = attempt({})
  const taken = await one.take()
  expect(taken).toEqual({
    source: { repo: 'web', ref: 'main', commit: head },
    source_digest: copySource(one.job, 'web', join(work, 'infra'), join(one.folder, 'copy'), SKIPPED),
  })
  expect([one.read('main.tf'), one.read('ä b.txt')]).toEqual([module(1), 'x\n'])
  for (const name of ['source/terraform.tfstate', 'home/repo.git'])
    expect(existsSync(join(one.folder, name)), name).toBe(false)
  expect(one.job.executed).toEqual({ commit: head })
  const release = commit('release/2', { 'infra/main.tf': module(2) })
  expect((await attempt({ ref: 'release/2' }).take()).source?.commit).toBe(release)
})

it('a run takes the approved commit after its branch moved, and none that is on no listed branch', async () => {
  const first = git('rev-parse', 'main')
  const other = commit('feature', { 'infra/main.tf': module(6) })
  commit('main', { 'infra/main.tf': module(3) })
  const run = attempt({ ref: 'release/2' })
  expect((await run.take({}, approved(first))).source?.commit).toBe(first)
  expect(run.read('main.tf')).toBe(module(1))
  expect((await attempt({}).take({}, approved(git('rev-parse', 'main')))).source_digest).toMatch(/^sha256:/)
  await refuses(attempt({}).take({}, approved(other)), 'agent_refused', /is on no listed branch of the rep.*"web"/)
  await refuses(attempt({}).take({}, approved('1'.repeat(40))), 'source_missing', /no longer has the commit 1111/)
  await refuses(attempt({}).take({}, {}), 'preview_stale', /names no commit/)
}, 60_000)

it('a branch that was deleted after the approval ends the run, also once its commit is gone', async () => {
  const lost = commit('release/lost', { 'infra/main.tf': module(4) })
  git('checkout', '-q', 'main')
  expect((await attempt({}).take({}, approved(lost, 'release/lost'))).source?.commit).toBe(lost)
  git('branch', '-q', '-D', 'release/lost')
  await refuses(attempt({ ref: 'release/lost' }).take(), 'source_missing', /has no branch "release\/lost"/)
  await refuses(attempt({}).take({}, approved(lost)), 'agent_refused', /on no listed branch/)
  git('reflog', 'expire', '--expire=now', '--all')
  git('gc', '-q', '--prune=now')
  await refuses(attempt({}).take({}, approved(lost)), 'source_missing', /no longer has the commit/)
}, 60_000)

it('takes a tag or a commit that is on a listed branch, and no other', async () => {
  const first = git('rev-parse', 'main~1')
  git('tag', 'plain', first)
  git('tag', '-a', '-m', 'made by hand', 'v1', first)
  const other = commit('unlisted', { 'infra/main.tf': module(7) })
  git('tag', 'v2', other)
  for (const ref of ['plain', 'v1', first]) {
    const one = attempt({ ref })
    expect((await one.take()).source).toEqual({ repo: 'web', ref, commit: first })
    expect(one.job.executed).toEqual({ commit: first })
  }
  for (const ref of ['v2', other])
    await refuses(attempt({ ref }).take(), 'agent_refused', /on no listed branch of .*Name another "ref"\./)
  await refuses(attempt({ ref: '2'.repeat(40) }).take(), 'source_missing', /no longer has .*Name another "ref"\./)
  // A listed branch comes before a tag of its name.
  git('tag', 'main', first)
  expect((await attempt({ ref: 'main' }).take()).source?.commit).toBe(git('rev-parse', 'refs/heads/main'))
  git('tag', '-d', 'main')
}, 60_000)

it('refuses other branches, options, folders that are links, and files that are not in the repository', async () => {
  await refuses(attempt({ ref: 'feature' }).take(), 'agent_refused', /does not list the branch "feature"/)
  await refuses(attempt({ ref: '--upload-pack=id' }).take(), 'agent_refused', /must be the name of a branch/)
  await refuses(attempt({}).take({ refs: ['release/*'] }), 'agent_refused', /"ref" must be the name of a branch/)
  await refuses(attempt({}).take({ repo: 'other' }), 'agent_refused', /names no repository "other"/)
  await refuses(attempt({}).take({ path: 'absent' }), 'source_missing', /has no folder "absent"/)
  const { job, folder } = attempt({ ref: 'main' })
  const found = { path: join(work, 'infra') }
  const folded = takeSource(job, { name: 'web', found, skipped: SKIPPED }, join(folder, 'source'))
  await refuses(folded, 'agent_refused', /is a folder and has no branches/)

  git('checkout', '-q', '-b', 'release/linked', 'main')
  symlinkSync('/etc', join(work, 'etc'))
  symlinkSync('../README.md', join(work, 'infra/outside.txt'))
  git('add', '-A')
  made()
  await refuses(attempt({ ref: 'release/linked' }).take(), 'agent_refused', /"outside\.txt" leads out of the source/)
  await refuses(attempt({ ref: 'release/linked' }).take({ path: 'etc' }), 'source_missing', /has no folder "etc"/)

  git('checkout', '-q', '-b', 'release/module', 'main')
  git('update-index', '--add', '--cacheinfo', `160000,${git('rev-parse', 'main')},infra/sub`)
  made()
  git('checkout', '-q', '-f', 'main')
  await refuses(attempt({ ref: 'release/module' }).take(), 'agent_refused', /has the submodule "sub"/)

  const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${'0'.repeat(64)}\nsize 1\n`
  commit('release/large', { 'infra/large.bin': pointer })
  await refuses(attempt({ ref: 'release/large' }).take(), 'agent_refused', /"large\.bin" .* is in Git LFS/)
  git('checkout', '-q', 'main')
}, 60_000)

it('the credential of the repository is for git alone, and git gets no other', async () => {
  const token = join(lab.folder, 'token')
  writeFileSync(token, TOKEN)
  const seen = join(lab.folder, 'seen')
  const shown = lab.script('git', `env >> '${seen}'\necho "with $TOKEN" >&2\nexec '${program}' "$@"`)
  const env = { TOKEN: { file: token }, SIGNALBOX_SSH_KEY: { file: token } }
  const credentials = { reader: { jobs: ['source'], env } }
  const repos = { web: { url: join(work, '.git') } }
  const one = attempt({}, { credentials, git: { program: shown, repos } })
  await one.take({ credentials: 'reader' })
  const text = readFileSync(seen, 'utf8')
  expect(text).toContain(`TOKEN=${TOKEN}`)
  expect(text).not.toContain(SECRET)
  expect(one.said.join('\n')).toContain('with •••')
  expect(one.said.join('\n')).not.toContain(TOKEN)
  expect(one.job.env).not.toHaveProperty('TOKEN')
  expect(existsSync(join(one.folder, 'identity'))).toBe(false)
  expect(credentialOf(one.job.file, { credentials: 'reader' }, 'opentofu.preview')).toMatch(/does not allow/)
})

it("an agent's file names a folder or a repository, never both", () => {
  const at = join(lab.folder, 'sources.json')
  const read = (source: object) => {
    const base = { format: 'signalbox/agent@1', pools: ['infra'], state_dir: '/tmp/state', uid: 0 }
    const rules = { git: { program, repos: { web: { url: '/srv/web.git' } } } }
    const tofu = { program: '/usr/bin/tofu', sources: { web: source } }
    writeFileSync(at, JSON.stringify({ ...base, ...rules, tofu }))
    return readAgentFile(at)
  }
  expect(() => read({ repo: 'web', refs: ['main', 'release/*'], path: 'infra/eu1', state: '/srv/state' })).not.toThrow()
  const faulty = [
    { path: '/srv/web', repo: 'web', refs: ['main'] },
    { path: '/srv/web', refs: ['main'] },
    { repo: 'web' },
    { repo: 'web', refs: ['--all'] },
    { repo: 'web', refs: ['main'], path: '../infra' },
  ]
  for (const source of faulty)
    expect(() => read(source), JSON.stringify(source)).toThrow('/tofu/sources/web must be a folder')
})

it('the commit that the gate shows is applied although its branch moved, and evidence states it', async () => {
  const first = commit('release/9', { 'infra/main.tf': module(10) })
  const tofu = await locateTofu(createScreen())
  const state = lab.place('tfstate')
  const source = { repo: 'web', refs: ['main', 'release/*'], path: 'infra', state }
  lab.startAgent({
    ...{ pools: ['infra'], uid: 0, git: { program, repos: { web: { url: join(work, '.git') } } } },
    tofu: { program: tofu, sources: { web: source } },
  })
  const node = (node_id: string, job: string, inputs: object, outputs: object, depends_on: string[] = []) => ({
    ...{ node_id, executor: 'external', pool: 'infra', depends_on, outputs },
    with: { job, inputs: { source: 'web', ...inputs } },
  })
  const preview = { $from: 'nodes/plan/outputs/preview' }
  const path = await lab.startGraph({
    nodes: [
      node('plan', 'opentofu.preview', { ref: 'release/9' }, { preview: '/preview' }),
      node('apply', 'opentofu.apply', { preview }, { applied: '/applied' }, ['plan']),
    ],
    gates: [{ gate_id: 'go', policy: { approvals: { groups: [{ group: 'netops', min: 1 }] } }, guards: ['apply'] }],
  })
  const gate = await lab.waiting(path)
  expect(gate.subject.bound_outputs[0].value.source).toEqual({ repo: 'web', ref: 'release/9', commit: first })
  commit('release/9', { 'infra/main.tf': module(11) })
  await lab.approve(path)
  await lab.reaches(path, 'succeeded', 'apply')
  const text = readFileSync(join(state, 'default.tfstate'), 'utf8')
  expect(JSON.parse(text).resources[0].instances[0].attributes.input.value).toBe(10)
  const evidence = await exportOf(lab, path, 'Node apply succeeded (attempt 1)')
  expect(executedIn(evidence)).toMatchObject([{ commit: first }, { commit: first, exit: 0 }])
}, 180_000)
