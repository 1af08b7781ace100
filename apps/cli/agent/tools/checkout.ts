import { chownSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import { relative } from 'node:path'
import type { Preview } from '../../../shared/contracts/client/preview.ts'
import { maskerOf } from '../../../shared/data/mask.ts'
import { matcherOf } from '../../../shared/data/pattern.ts'
import { removeTree } from '../../../shared/run/remove.ts'
import { credentialOf, secretsIn } from './credentials.ts'
import type { Checkout, Folder } from './file.ts'
import { dropKey } from './host.ts'
import { asBranch, openRepo, type Repo } from './repo.ts'
import { copySource, digestOf, filesOf } from './source.ts'
import { Ended, failed, type Job, refusal, stale } from './types.ts'

/** A preview, as far as it names the commit of its source. */
export type Approved = Pick<Preview, 'source'>
type Origin = NonNullable<Approved['source']>
/** `source`: the commit, if the source is in a repository. */
export type Taken = { source_digest: string; source?: Origin }
/** A source as the agent's file names it; files with a name that matches `skipped` are left out. */
type Asked = { name: string; found: Folder | Checkout; skipped: RegExp }

/** What a credential of the agent's file lists as its job if it reads repositories of sources. */
const READING = 'source'
const SUBMODULE = /^160000 /
const LFS = 'version https://git-lfs.github.com/spec/'
/** A pointer is smaller than this. */
const LFS_BYTES = 1024
const UNCHANGED = 'No change was made.'

/**
 * Brings a source into this folder of the attempt. From a repository: the commit of the preview if one is given,
 * otherwise that of `ref`, by default the head of the first branch that the agent's file lists.
 */
export const takeSource = async (
  job: Job,
  { name, found, skipped }: Asked,
  dir: string,
  preview?: Approved,
): Promise<Taken> => {
  const { ref } = job.work.inputs as Record<string, unknown>
  if (!('repo' in found)) {
    if (ref !== undefined) throw refusal(`The source "${name}" is a folder and has no branches. Leave out "ref".`)
    return { source_digest: copySource(job, name, found.path, dir, skipped) }
  }
  if (preview && !preview.source) throw new Ended(stale(`The preview names no commit of the source "${name}".`))
  const { uid } = job.file
  mkdirSync(dir)
  if (uid) chownSync(dir, uid, uid)
  const repo = await openRepo(reader(job, found), found.repo)
  const head = preview ? undefined : await headOf(repo, found, ref)
  const source = preview?.source ?? head ?? (await namedIn(repo, found, ref))
  if (head) await repo.must(fetching(repo, head.commit))
  else await fetchListed(repo, found, source.commit, preview ? 'Retry the preview.' : 'Name another "ref".')
  await write(repo, { name, found, skipped }, source.commit, dir)
  // The programs of the job need neither the key nor the history.
  dropKey(job)
  removeTree(repo.dir)
  job.executed.commit = source.commit
  return { source_digest: digestOf(name, dir), source }
}

/** The job as git sees it: with the credential that reads the repository, and without that of the job. */
const reader = (job: Job, { credentials }: Checkout): Job => {
  const inputs = { ...(job.work.inputs as Record<string, unknown>), credentials }
  const given = credentialOf(job.file, inputs, READING)
  if (typeof given === 'string') throw refusal(given)
  // Programs of the job would find the copies.
  if (Object.keys(given.files).length > 0)
    throw refusal(`The credential "${credentials}" reads a repository, so it cannot have "files".`)
  const { PATH = '', HOME = '', TMPDIR = '', LANG = '' } = job.env
  const mask = maskerOf(secretsIn(given))
  const log: Job['log'] = (text, line) => job.log(mask(text, line), line)
  // It only prepares: evidence states the programs of the job.
  return { ...job, env: { PATH, HOME, TMPDIR, LANG, ...given.env }, mask, log, executed: {} }
}

/** The branches of the repository that the agent's file lists, with their commits. */
const listedIn = async (repo: Repo, refs: readonly string[]): Promise<Map<string, string>> => {
  const listed = refs.map(matcherOf)
  return new Map([...(await repo.heads(...refs))].filter(([branch]) => listed.some((fits) => fits(branch))))
}

const isListed = ({ refs }: Checkout, branch: string): boolean => refs.some((pattern) => matcherOf(pattern)(branch))
const isCommit = (asked: unknown): asked is string =>
  typeof asked === 'string' && /^[0-9a-f]{40}([0-9a-f]{24})?$/.test(asked)

/** The head of a listed branch; `undefined` if `ref` names another thing. */
const headOf = async (repo: Repo, found: Checkout, asked: unknown = found.refs[0]): Promise<Origin | undefined> => {
  if (isCommit(asked)) return undefined
  const ref = asBranch('ref', asked)
  const commit = isListed(found, ref) ? (await repo.heads(ref)).get(ref) : undefined
  return commit === undefined ? undefined : { repo: found.repo, ref, commit }
}

/** The commit of this name, or of this tag; it must be on a listed branch too. */
const namedIn = async (repo: Repo, found: Checkout, asked: unknown = found.refs[0]): Promise<Origin> => {
  if (isCommit(asked)) return { repo: found.repo, ref: asked, commit: asked }
  const ref = asBranch('ref', asked)
  const commit = await repo.tag(ref)
  if (commit !== undefined) return { repo: found.repo, ref, commit }
  if (!isListed(found, ref))
    throw refusal(
      `The agent's file does not list the branch "${ref}" of the repository "${found.repo}", which has no such tag.`,
    )
  throw new Ended(
    failed('source_missing', `The repository "${found.repo}" has no branch "${ref}". ${UNCHANGED}`, false),
  )
}

const fetching = ({ url }: Repo, commit: string) => ['fetch', '-q', '--no-tags', '--depth=1', '--', url, commit]

/** Fetches a commit that is on a listed branch, or ends the job. The head of one comes without its history. */
const fetchListed = async (repo: Repo, { repo: name, refs }: Checkout, commit: string, next: string): Promise<void> => {
  const heads = await listedIn(repo, refs)
  if ([...heads.values()].includes(commit)) return void (await repo.must(fetching(repo, commit)))
  if (heads.size > 0) {
    const stdin = [...heads.keys()].map((branch) => `+refs/heads/${branch}:refs/heads/here/${branch}\n`).join('')
    await repo.must(['fetch', '-q', '--no-tags', '--stdin', '--', repo.url], { stdin })
    const { out } = await repo.git(['for-each-ref', '--count=1', `--contains=${commit}`, 'refs/heads/here/'])
    if (out.trim() !== '') return
  }
  const { code } = await repo.git(fetching(repo, commit))
  if (code === 0)
    throw refusal(`The commit ${commit} is on no listed branch of the repository "${name}". ${UNCHANGED} ${next}`)
  const message = `The repository "${name}" no longer has the commit ${commit}. ${UNCHANGED} ${next}`
  throw new Ended(failed('source_missing', message, false))
}

/** Writes the files of a commit. Git itself refuses names that lead out, and writes through no link. */
const write = async (repo: Repo, { name, found, skipped }: Asked, commit: string, dir: string): Promise<void> => {
  const { path = '' } = found
  const { code, out } = await repo.git(['ls-tree', '-r', `${commit}:${path}`])
  if (code !== 0)
    throw new Ended(
      failed('source_missing', `The source "${name}" has no folder "${path}" at ${commit}. ${UNCHANGED}`, false),
    )
  const lines = out.split('\n').filter(Boolean)
  const module = lines.find((line) => SUBMODULE.test(line))
  if (module !== undefined)
    throw refusal(`The source "${name}" has the submodule "${placeIn(module)}". Commit its files instead.`)
  const taken = lines.filter(
    (line) =>
      !placeIn(line)
        .split('/')
        .some((part) => skipped.test(part)),
  )
  await repo.must(['update-index', '--index-info'], { stdin: taken.map((line) => `${line}\n`).join('') })
  await repo.must(['checkout-index', '-q', '-a'], { work_tree: dir })
  const pointer = filesOf(dir).find(
    (file) => statSync(file).size < LFS_BYTES && readFileSync(file, 'utf8').startsWith(LFS),
  )
  if (pointer !== undefined)
    throw refusal(`The file "${relative(dir, pointer)}" of the source "${name}" is in Git LFS. Commit it without LFS.`)
}

/** The path in a line of `ls-tree`, which quotes unusual ones. */
const placeIn = (line: string): string => line.slice(line.indexOf('\t') + 1).replace(/^"|"$/g, '')
