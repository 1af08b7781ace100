import { Value } from 'typebox/value'
import { CommitPreview, type PreviewChange } from '../../../shared/contracts/client/preview.ts'
import { digest } from '../../../shared/data/digest.ts'
import { isObject } from '../../../shared/data/pointer.ts'
import { createDiff } from '../tools/diff.ts'
import { pictureOf } from '../tools/picture.ts'
import { branchOf, openRepo, type Repo, repoIn } from '../tools/repo.ts'
import { failed, type Job, refusal, refusedBy, stale, type Tool, type Verdict } from '../tools/types.ts'

const AUTHOR = 'Signalbox <signalbox@localhost>'
const PATH = /^(?!.*(^|\/)(\.{0,2}|\.git)(\/|$))[A-Za-z0-9._@+/-]{1,500}$/i
const MAX_FILES = 500
const SHA = /^[0-9a-f]{40,64}$/
/** How often a merge is redone because the branch moved in the meantime. */
const TRIES = 3

type Asked = { base: string; branch: string; files: Record<string, string | null>; message: string; digest: string }

const askedOf = (job: Job): Asked => {
  const { repo, files, message } = job.work.inputs as Record<string, unknown>
  const base = branchOf(job, 'base')
  const branch = branchOf(job, 'branch', 'push')
  if (typeof message !== 'string' || message.trim() === '') throw refusal('"message" must be a string.')
  if (!isObject(files) || Object.keys(files).length > MAX_FILES || Object.keys(files).length === 0)
    throw refusal(`"files" must be an object of 1 to ${MAX_FILES} files.`)
  for (const [path, text] of Object.entries(files)) {
    if (!PATH.test(path)) throw refusal(`"${path}" is not a path inside a repository.`)
    if (typeof text !== 'string' && text !== null)
      throw refusal(`The file "${path}" must be a string, or null to delete it.`)
  }
  const asked = { base, branch, files: files as Asked['files'], message }
  return { ...asked, digest: digest({ repo, ...asked }) }
}

/** Commits these files on a base. Author and time come from the agent's file and the base, so a repeat is the same. */
const commitOn = async (job: Job, { must }: Repo, head: string, { files, message }: Asked): Promise<string> => {
  const time = (await must(['log', '-1', '--format=%ct', head])).trim()
  const who = `${job.file.git?.author ?? AUTHOR} ${time} +0000`
  const modes = new Map<string, string>()
  for (const line of (await must(['ls-tree', '-r', head, '--', ...Object.keys(files)])).split('\n').filter(Boolean)) {
    const [, mode = '', path = ''] = /^(\d+) .*?\t(.*)$/.exec(line) ?? []
    if (!mode.startsWith('100')) throw refusal(`"${path}" is a link or a submodule.`)
    modes.set(path, mode)
  }
  const data = (text: string) => `data ${Buffer.byteLength(text)}\n${text}\n`
  const lines = Object.entries(files).map(([path, text]) =>
    text === null ? `D ${path}\n` : `M ${modes.get(path) ?? '100644'} inline ${path}\n${data(text)}`,
  )
  const stdin = `commit refs/heads/made\nauthor ${who}\ncommitter ${who}\n${data(message)}from ${head}\n${lines.join('')}\ndone\n`
  await must(['fast-import', '--quiet', '--force', '--done'], { stdin })
  return (await must(['rev-parse', 'refs/heads/made'])).trim()
}

/** Returns the changes of a commit, file by file. */
const changesIn = async (job: Job, { must }: Repo, from: string, to: string): Promise<PreviewChange[]> => {
  const changes: PreviewChange[] = []
  let file: { id: string; action: string; diff: ReturnType<typeof createDiff> } | undefined
  const close = () => file && changes.push(file.diff.change(file.id, file.action))
  const take = (line: string) => {
    const [, path] = /^diff --git "?a\/.* "?b\/(.*?)"?$/.exec(line) ?? []
    if (path !== undefined) {
      close()
      file = { id: path, action: 'update', diff: createDiff(job.mask) }
    } else if (file) {
      if (line.startsWith('new file mode')) file.action = 'create'
      if (line.startsWith('deleted file mode')) file.action = 'delete'
      file.diff.read(line)
    }
  }
  await must(['diff-tree', '-r', '-p', '-U0', '--no-renames', '--no-ext-diff', '--no-textconv', from, to], { take })
  close()
  return changes
}

const fetchHead = async ({ must, url }: Repo, branch: string, ...options: string[]): Promise<string> => {
  await must(['fetch', '-q', '--no-tags', ...options, '--', url, `+refs/heads/${branch}:refs/heads/here/${branch}`])
  return (await must(['rev-parse', `refs/heads/here/${branch}`])).trim()
}

/** `git.preview`: makes the commit without pushing it and returns its changes. */
export const previewCommit: Tool = async (job) => {
  const asked = askedOf(job)
  const repo = await openRepo(job, repoIn(job))
  const heads = await repo.heads(asked.base, asked.branch)
  if (!heads.has(asked.base)) return failed('source_missing', `The repository has no branch "${asked.base}".`, false)
  const head = await fetchHead(repo, asked.base, '--depth=1')
  const commit = await commitOn(job, repo, head, asked)
  const files = await changesIn(job, repo, head, commit)
  const before = heads.get(asked.branch) ?? null
  const moved = before !== commit && files.length > 0
  const fields = [{ path: '/head', ...(before !== null && { before }), after: commit }]
  const branch = { id: `branch ${asked.branch}`, action: before === null ? 'create' : 'replace', fields }
  const made: CommitPreview = {
    ...{ format: 'signalbox/preview@1', binding: 'exact', tool: (await repo.must(['--version'])).trim(), drift: 0 },
    ...{ source_digest: asked.digest, head, branch_head: before, commit },
    ...pictureOf([...(moved ? [branch] : []), ...files]),
  }
  return { status: 'succeeded', outputs: { preview: made } }
}

/** `git.push`: creates the branch with exactly the previewed commit. A repeat finds it already there. */
export const push: Tool = async (job) => {
  const given = (job.work.inputs as Record<string, unknown>).preview
  if (!Value.Check(CommitPreview, given))
    return refusedBy('"preview" is not a preview of git: pass the output of its node.')
  const asked = askedOf(job)
  if (asked.digest !== given.source_digest) return stale('The inputs differ from those of the preview.')
  const { commit, head, branch_head } = given
  if (given.no_change) return { status: 'succeeded', outputs: { commit: head, branch: asked.branch, pushed: false } }
  const done: Verdict = { status: 'succeeded', outputs: { commit, branch: asked.branch, pushed: true } }
  const repo = await openRepo(job, repoIn(job))
  const heads = await repo.heads(asked.base, asked.branch)
  if (heads.get(asked.branch) === commit) return done
  if (heads.get(asked.base) !== head) return stale(`The branch "${asked.base}" has changed since this commit was made.`)
  const here = await fetchHead(repo, asked.base, '--depth=1')
  if (here !== head || (await commitOn(job, repo, head, asked)) !== commit)
    return stale('These files produce a different commit than the preview.')
  return (await bring(job, repo, asked.branch, commit, branch_head ?? '')) ?? done
}

/** Moves a branch from its previous commit to another. Returns the reason if it did not; `undefined` if it did. */
const bring = async (
  job: Job,
  repo: Repo,
  branch: string,
  commit: string,
  was: string,
): Promise<Verdict | undefined> => {
  job.executed.commit = commit
  const lease = `--force-with-lease=refs/heads/${branch}:${was}`
  const args = ['push', '--porcelain', '--no-verify', lease, '--', repo.url, `${commit}:refs/heads/${branch}`]
  const { code, out, said } = await repo.git(args, { acts: true })
  if (code === 0) return undefined
  // The answer may be lost even though the branch moved.
  const now = await repo.heads(branch).catch(() => undefined)
  if (!now) {
    const message = `The push of ${branch} got no answer. Check the branch: if it succeeded, its commit is ${commit}.`
    return { status: 'unknown', class: 'connection_lost', message }
  }
  if (now.get(branch) === commit) return undefined
  if (/stale info|fetch first|non-fast-forward|cannot lock ref/.test(`${out}${said}`))
    return stale(`The branch "${branch}" has changed.`)
  const why = /^!.*\t\[[^\]]+\] \((.*)\)$/m.exec(out)?.[1] ?? said.trim().split('\n').at(-1)
  return failed('conflict', `The repository refused the branch "${branch}": ${why}. No change was made.`, false)
}

/** `git.merge`: merges exactly this commit of a branch into another one. A repeat finds it already merged. */
export const merge: Tool = async (job) => {
  const { commit, message } = job.work.inputs as Record<string, unknown>
  const branch = branchOf(job, 'branch')
  const into = branchOf(job, 'into', 'merge')
  if (typeof commit !== 'string' || !SHA.test(commit)) return refusedBy('"commit" must be the full name of a commit.')
  const repo = await openRepo(job, repoIn(job))
  const text = typeof message === 'string' && message !== '' ? message : `Merge ${branch} into ${into}`
  for (let turn = 1; ; turn += 1) {
    const here = await fetchHead(repo, into)
    const { code: out } = await repo.git(['merge-base', '--is-ancestor', commit, here])
    if (out === 0) return { status: 'succeeded', outputs: { commit: here, merged: commit } }
    const heads = await repo.heads(branch)
    if (heads.get(branch) !== commit) return stale(`The branch "${branch}" is not at ${commit}.`)
    await fetchHead(repo, branch)
    const made = await mergeOf(job, repo, here, commit, text)
    if (typeof made !== 'string') return made
    const refused = await bring(job, repo, into, made, here)
    if (!refused) return { status: 'succeeded', outputs: { commit: made, merged: commit } }
    if (turn === TRIES || !('class' in refused) || refused.class !== 'preview_stale') return refused
  }
}

const mergeOf = async (job: Job, { git, must }: Repo, here: string, commit: string, text: string) => {
  const { code, out } = await git(['merge-tree', '--write-tree', '--name-only', '--no-messages', here, commit])
  const [tree = '', ...files] = out.split('\n').filter(Boolean)
  if (code === 1)
    return failed('conflict', `These files conflict: ${files.slice(0, 20).join(', ')}. No change was made.`, false)
  if (code !== 0) return failed('tool_failed', 'git merge-tree failed: see the log. No change was made.')
  const times = (await must(['log', '--no-walk', '--format=%ct', here, commit])).split('\n').map(Number)
  const who = `${job.file.git?.author ?? AUTHOR} ${Math.max(...times)} +0000`
  const body = `tree ${tree}\nparent ${here}\nparent ${commit}\nauthor ${who}\ncommitter ${who}\n\n${text}\n`
  return (await must(['hash-object', '-w', '-t', 'commit', '--stdin'], { stdin: body })).trim()
}
