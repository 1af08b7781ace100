import { execFileSync } from 'node:child_process'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { parse } from 'yaml'
import { ROOT } from '../../apps/platform/base/paths.ts'
import { until } from '../support/until.ts'
import { type Lab, startLab } from './support/agent.ts'
import { startForge } from './support/forge.ts'
import { contained, forgeAs, forged, forgery, forging, refused } from './support/refusal.ts'
import { locateGit, locateSsh, startSshd } from './support/tools.ts'

/** git against a bare repository behind a real sshd: the approved commit is the one that is pushed. */
let lab: Lab
let sshd: Awaited<ReturnType<typeof startSshd>>
let file: Record<string, unknown>
let bare: string
let forge: Awaited<ReturnType<typeof startForge>>
const SECRET = 'hunter2-in-the-diff'
const root = process.getuid?.() === 0
const as = root ? { uid: 65_534, gid: 65_534 } : {}
const git = (...args: string[]) =>
  execFileSync('git', ['-c', 'user.name=T', '-c', 'user.email=t@t', ...args], {
    ...as,
    encoding: 'utf8',
    env: { PATH: process.env.PATH, HOME: lab.folder, GIT_DIR: bare },
  }).trim()
const commit = (branch: string, files: Record<string, string>, message = 'by hand') => {
  const work = lab.place(`work-${Math.random()}`)
  git('--work-tree', work, 'read-tree', '--empty')
  try {
    git('--work-tree', work, 'read-tree', branch)
  } catch {
    // the first commit
  }
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(work, name), text)
    if (name === 'run.sh') chmodSync(join(work, name), 0o755)
    git('--work-tree', work, 'add', join(work, name))
  }
  const tree = git('write-tree')
  const parents = git('branch', '--list', branch) === '' ? [] : ['-p', branch]
  const made = git('commit-tree', tree, ...parents, '-m', message)
  git('update-ref', `refs/heads/${branch}`, made)
  return made
}
beforeAll(async () => {
  process.env.FORGE_TOKEN = `Bearer ${SECRET}`
  const local = { scheme: 'http', host: '127.0.0.1', networks: ['127.0.0.0/8'], ports: ['1024-65535'] }
  lab = await startLab(['infra'], {
    more: { forge: { destinations: [local], secrets: ['secret://env/FORGE_TOKEN#*'] } },
  })
  const program = await locateGit()
  sshd = await startSshd(lab.folder)
  bare = join(lab.place('repos'), 'web.git')
  git('init', '-q', '--bare', '-b', 'main', bare)
  const big = Array.from({ length: 100_000 }, (_, i) => `line ${i} ${'x'.repeat(90)}`).join('\n')
  commit('main', { 'a.txt': `one\n${SECRET}\n`, 'run.sh': 'echo\n', 'big.txt': big })
  lab.write('password', SECRET)
  const repo = (host_keys: string[]) => ({
    ...{ url: `ssh://${sshd.user}@127.0.0.1:${sshd.port}${bare}`, host_keys, push: ['signalbox/*'], merge: ['main'] },
  })
  file = {
    ...{ pools: ['infra'], uid: root ? 65_534 : undefined, concurrency: 4 },
    programs: forgery(lab),
    ssh: { program: await locateSsh(), hosts: ['none'], users: [sshd.user] },
    git: { program, repos: { web: repo(sshd.host_keys), wrong: repo([sshd.other_key]), open: repo([]) } },
    credentials: {
      git: {
        jobs: ['git.preview', 'git.push', 'git.merge'],
        env: { SIGNALBOX_SSH_KEY: { file: sshd.identity }, TOKEN: { file: `${lab.folder}/password` } },
      },
    },
  }
  lab.startAgent(file)
  const merge = (base: string, with_commit: string) => {
    const [tree = ''] = git('merge-tree', '--write-tree', base, with_commit).split('\n')
    git('update-ref', `refs/heads/${base}`, git('commit-tree', tree, '-p', base, '-p', with_commit, '-m', 'merge'))
  }
  forge = await startForge({ headOf, merge }, `Bearer ${SECRET}`)
}, 120_000)
afterAll(async () => {
  forge?.stop()
  sshd?.stop()
  await lab.stop()
})

const node = (node_id: string, job: string, inputs: object, outputs: string[], more: object = {}) => ({
  ...{
    node_id,
    executor: 'external',
    pool: 'infra',
    with: { job, inputs: { repo: 'web', credentials: 'git', ...inputs } },
  },
  ...{ outputs: Object.fromEntries(outputs.map((name) => [name, `/${name}`])), ...more },
})
const policy = { approvals: { groups: [{ group: 'netops', min: 1 }] } }
const change = (branch: string, files: object, more: object = {}, pushed: object = {}) => {
  const inputs = { base: 'main', branch, files, message: `Change ${branch}`, ...more }
  const bound = { preview: { $from: 'nodes/plan/outputs/preview' } }
  return {
    nodes: [
      node('plan', 'git.preview', inputs, ['preview']),
      node('push', 'git.push', { ...inputs, ...bound }, ['commit', 'pushed'], { depends_on: ['plan'], ...pushed }),
    ],
    gates: [{ gate_id: 'go', policy, guards: ['push'] }],
  }
}
const headOf = (branch: string) => git('for-each-ref', '--format=%(objectname)', `refs/heads/${branch}`)
const boundOf = (gate: { subject: { bound_outputs: { value: Record<string, never> }[] } }) =>
  gate.subject.bound_outputs[0]?.value as never as Record<string, string>

it('pushes and merges exactly the approved commit; repeats of both find it in place', async () => {
  const files = { 'a.txt': 'one\ntwo\n', 'run.sh': 'echo changed\n', 'new/b.txt': 'b\n' }
  const first = change('signalbox/one', files)
  const nodes = [
    ...first.nodes,
    node(
      'merge',
      'git.merge',
      { branch: 'signalbox/one', into: 'main', commit: { $from: 'nodes/push/outputs/commit' } },
      ['commit', 'merged'],
      { depends_on: ['push'] },
    ),
  ]
  const path = await lab.startGraph({ ...first, nodes })
  const gate = await lab.approve(path)
  const bound = boundOf(gate)
  expect(bound).toMatchObject({
    ...{ binding: 'exact', branch_head: null, counts: { create: 2, update: 2 } },
    changes: expect.arrayContaining([
      {
        id: 'a.txt',
        action: 'update',
        digest: expect.any(String),
        fields: [{ path: '/line 2', before: '•••', after: 'two' }],
      },
      { id: 'branch signalbox/one', action: 'create', fields: [{ path: '/head', after: bound.commit }] },
    ]),
  })
  expect(JSON.stringify(gate)).not.toContain(SECRET)
  const pushed = await lab.reaches(path, 'succeeded', 'push')
  expect(pushed.outputs).toEqual({ commit: bound.commit, pushed: true })
  expect(headOf('signalbox/one')).toBe(bound.commit)
  expect(git('show', 'signalbox/one:new/b.txt')).toBe('b')
  expect(git('ls-tree', 'signalbox/one', 'run.sh')).toMatch(/^100755/)
  const merged = await lab.reaches(path, 'succeeded', 'merge')
  expect(headOf('main')).toBe(merged.outputs.commit)
  expect(git('log', '-1', '--format=%P', 'main').split(' ')[1]).toBe(bound.commit)

  const again = await lab.start(
    node('merge', 'git.merge', { branch: 'signalbox/one', into: 'main', commit: bound.commit }, ['commit']),
  )
  expect((await lab.reaches(again, 'succeeded', 'merge')).outputs.commit).toBe(merged.outputs.commit)
}, 120_000)

it('if a base or branch changed after the approval, nothing is pushed, and the retry of the preview asks again', async () => {
  const path = await lab.startGraph(change('signalbox/stale', { 'a.txt': 'mine\n' }))
  await lab.waiting(path)
  commit('main', { 'c.txt': 'other\n' })
  const old = await lab.approve(path)
  await refused(lab, path, 'push', 'preview_stale', '"main" has changed')
  expect(headOf('signalbox/stale')).toBe('')
  const retried = await lab.p.as('olga').post(`${path}/nodes/plan/retry`, { scope: 'downstream', reason: 'stale' })
  expect([200, 202], retried.text).toContain(retried.status)
  const gate = await until(async () => {
    const now = await lab.waiting(path)
    return now.round > old.round ? now : undefined
  })
  expect(gate.digest).not.toBe(old.digest)
  // The lease still holds when another person pushes the branch in between.
  const theirs = commit('signalbox/stale', { 'a.txt': 'theirs\n' })
  await lab.approve(path)
  await refused(lab, path, 'push', 'preview_stale', 'has changed')
  expect(headOf('signalbox/stale')).toBe(theirs)
}, 120_000)

it('a conflict names the files, and a diff of 10 MB is shown in part with its size and digest', async () => {
  const made = commit('signalbox/conflict', { 'a.txt': 'left\n' })
  git(
    'update-ref',
    'refs/heads/signalbox/conflict',
    git('commit-tree', git('rev-parse', `${made}^{tree}`), '-p', git('rev-parse', 'main~1'), '-m', 'left'),
  )
  commit('main', { 'a.txt': 'right\n' })
  const head = headOf('main')
  const path = await lab.start(
    node('merge', 'git.merge', { branch: 'signalbox/conflict', into: 'main', commit: headOf('signalbox/conflict') }, [
      'commit',
    ]),
  )
  const failed = await lab.reaches(path, 'failed', 'merge')
  expect(failed).toMatchObject({ error_class: 'conflict', error_message: expect.stringContaining('a.txt') })
  expect(headOf('main')).toBe(head)

  const big = await lab.startGraph(change('signalbox/big', { 'big.txt': null }))
  const gate = await lab.waiting(big)
  const [first] = (
    boundOf(gate) as never as { changes: { id: string; fields: { before: string }[]; digest: string }[] }
  ).changes
  expect(first).toMatchObject({ id: 'big.txt', action: 'delete', digest: expect.stringMatching(/^sha256:/) })
  expect(first?.fields[0]?.before).toMatch(/… \(\d{8} characters\)$/)
  expect(JSON.stringify(first).length).toBeLessThan(2000)
  await contained(lab, big, 'push')
}, 120_000)

it('refuses foreign paths, branches and repositories, and a host with another key', async () => {
  const inputs = { base: 'main', branch: 'signalbox/x', files: { 'a.txt': 'x' }, message: 'm' }
  const cases: [object, RegExp, string?][] = [
    [{ files: { '../a.txt': 'x' } }, /is not a path inside/],
    [{ files: { 'a/../../b': 'x' } }, /is not a path inside/],
    [{ files: { '/etc/passwd': 'x' } }, /is not a path inside/],
    [{ files: { '.git/hooks/update': 'x' } }, /is not a path inside/],
    [{ files: { 'x/.GIT/config': 'x' } }, /is not a path inside/],
    [{ files: { 'a b"\n': 'x' } }, /is not a path inside/],
    [{ branch: 'main' }, /does not allow jobs to push "main"/],
    [{ branch: 'signalbox/../main' }, /must be the name of a branch/],
    [{ base: '--upload-pack=id' }, /must be the name of a branch/],
    [{ base: 'none' }, /no branch "none"/, 'source_missing'],
    [{ repo: 'https://evil.example/x' }, /names no repository/],
    [{ repo: 'wrong' }, /does not have a pinned host key: it offers SHA256/, 'host_key'],
    [{ repo: 'open' }, /pins no host key/, 'host_key'],
  ]
  const path = await lab.start(
    ...cases.map(([more], i) => node(`n${i}`, 'git.preview', { ...inputs, ...more }, ['preview'])),
  )
  for (const [i, [, words, kind = 'agent_refused']] of cases.entries()) await refused(lab, path, `n${i}`, kind, words)
  const push = node('push', 'git.push', { ...inputs, branch: 'signalbox/forged', preview: forged }, ['commit'])
  forgeAs(lab, 'git', { format: 'signalbox/preview@1' })
  const other = await lab.start(forging('git'), { ...push, depends_on: ['forged'] })
  expect((await lab.reaches(other, 'failed', 'push')).error_message).toMatch(/is not a preview of git/)
}, 120_000)

type Node = { node_id: string; with: { base_url: string; request: { url: unknown }; poll?: object }; outputs?: object }
/** The nodes of the GitHub guide, in its order: open, request, merge, merged. */
const githubNodes = (branch: string): Node[] => {
  const guide = readFileSync(join(ROOT, 'apps/cli/agent/guides.md'), 'utf8')
  const blocks = [...guide.matchAll(/```yaml\n# github.*\n([\s\S]*?)```/g)].map(([, block]) => block)
  const nodes = JSON.stringify(parse(blocks.join(''), { merge: true }))
  return JSON.parse(
    nodes
      .replaceAll('https://api.github.com', `${forge.url}/github`)
      .replaceAll('signalbox/size-20', branch)
      .replaceAll('"interval_s":30', '"interval_s":1'),
  )
}
/** A change whose branch becomes a pull request. */
const asked = async (branch: string, nodes: Node[], gates: object[] = []) => {
  const pushed = change(branch, { 'size.txt': `${branch}\n` }, {}, { idempotent: true })
  const path = await lab.startGraph({
    ...pushed,
    nodes: [...pushed.nodes, ...nodes],
    gates: [...pushed.gates, ...gates],
  })
  await lab.approve(path)
  return path
}
const isMerged = (branch: string) =>
  git('branch', '--format=%(refname:short)', '--contains', headOf(branch)).split('\n').includes('main')

it('opens a pull request once although the answer is lost, and merges exactly the commit that was approved', async () => {
  const [open, request, merge] = githubNodes('signalbox/size-20') as [Node, Node, Node]
  forge.state.cut = true
  const path = await asked('signalbox/size-20', [open, request, merge])
  await lab.reaches(path, 'succeeded', 'merge')
  expect(forge.requests).toMatchObject([{ head: 'signalbox/size-20', merged: true }])
  expect(isMerged('signalbox/size-20')).toBe(true)
  expect((await lab.p.as('vic').get(`${path}/nodes/merge/logs`)).text).not.toContain(SECRET)
}, 120_000)

it('waits for people who merge a pull request, and fails when they close it or merge another commit', async () => {
  for (const [branch, end] of [
    ['signalbox/closed', 'failed'],
    ['signalbox/taken', 'succeeded'],
    ['signalbox/other', 'failed'],
  ] as const) {
    const [open, request, , wait] = githubNodes(branch) as [Node, Node, Node, Node]
    const path = await asked(branch, [open, request, wait])
    await lab.reaches(path, 'succeeded', 'request')
    const one = forge.requests.find(({ head }) => head === branch) as (typeof forge.requests)[number]
    // Someone pushed another commit than the approved one, and merged that.
    if (branch === 'signalbox/other') commit(branch, { 'size.txt': 'theirs\n' })
    if (branch === 'signalbox/closed') forge.close(one)
    else forge.take(one)
    const node = await lab.reaches(path, end, 'merged')
    expect(node.error_class).toBe(end === 'failed' ? 'condition_failed' : null)
  }
}, 120_000)

it.each(['gitea', 'gitlab'])(
  'does the same at %s, and merges no branch that moved after its commit was approved',
  async (kind) => {
    const lab_url = `${forge.url}/${kind}`
    const at = (url: string, more = '') => ({ $join: [url, { $from: 'nodes/request/outputs/number' }, more] })
    const commit_of = { $from: 'nodes/push/outputs/commit' }
    const nodesFor = (branch: string): Node[] => {
      const [open, request, merge] = githubNodes(branch) as [Node, Node, Node]
      const calls = {
        gitea: {
          open: { method: 'POST', url: '/repos/infra/web/pulls', body: { title: 'a', head: branch, base: 'main' } },
          request: { method: 'GET', url: `/repos/infra/web/pulls/main/${encodeURIComponent(branch)}` },
          merge: {
            method: 'POST',
            url: at('/repos/infra/web/pulls/', '/merge'),
            body: { Do: 'merge', head_commit_id: commit_of },
          },
          poll: { method: 'GET', url: at('/repos/infra/web/pulls/') },
          number: '/body/number',
        },
        gitlab: {
          open: {
            method: 'POST',
            url: '/projects/infra%2Fweb/merge_requests',
            body: { title: 'a', source_branch: branch, target_branch: 'main' },
          },
          request: {
            method: 'GET',
            url: '/projects/infra%2Fweb/merge_requests',
            query: { source_branch: branch, target_branch: 'main', state: 'opened' },
          },
          merge: {
            method: 'PUT',
            url: at('/projects/infra%2Fweb/merge_requests/', '/merge'),
            body: { sha: commit_of },
          },
          poll: { method: 'GET', url: at('/projects/infra%2Fweb/merge_requests/') },
          number: '/body/0/iid',
        },
      }[kind as 'gitea' | 'gitlab']
      const until =
        kind === 'gitlab'
          ? { until: "response.body.state == 'merged'", fail_if: "response.body.state == 'closed'" }
          : {}
      const more = { base_url: lab_url }
      return [
        {
          ...open,
          with: { ...open.with, ...more, request: calls.open, expect: 'response.status in [201, 409]' } as never,
        },
        {
          ...request,
          with: { ...request.with, ...more, request: calls.request, expect: 'response.status == 200' } as never,
          outputs: { number: calls.number },
        },
        {
          ...merge,
          with: {
            ...merge.with,
            ...more,
            request: calls.merge,
            poll: { ...merge.with.poll, ...until, request: calls.poll },
          } as never,
        },
      ]
    }
    const branch = `signalbox/${kind}`
    const path = await asked(branch, nodesFor(branch))
    await lab.reaches(path, 'succeeded', 'merge')
    expect(isMerged(branch)).toBe(true)

    const moved = `signalbox/${kind}-moved`
    const other = await asked(moved, nodesFor(moved), [{ gate_id: 'last', policy, guards: ['merge'] }])
    await lab.reaches(other, 'succeeded', 'request')
    commit(moved, { 'a.txt': 'theirs\n' })
    await lab.approve(other, 'last')
    const refused = await lab.reaches(other, 'failed', 'merge')
    expect(refused).toMatchObject({ error_class: 'refused', error_message: expect.stringContaining('answered 409') })
    expect(isMerged(moved)).toBe(false)
  },
  180_000,
)
