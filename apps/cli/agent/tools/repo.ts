import { basename, join } from 'node:path'
import { matcherOf } from '../../../shared/data/pattern.ts'
import { named } from './file.ts'
import { hostKeyFault, hostKeysOf, sshOptions } from './host.ts'
import { Ended, failed, isDone, type Job, refusal, runTool, stopped } from './types.ts'

type Options = {
  stdin?: string
  /** It writes to the remote repository, so the outcome is unknown if it is killed. */
  acts?: boolean
  /** Receives the lines of stdout instead of `out`. */
  take?: (line: string) => void
  /** Its files are written to this folder. */
  work_tree?: string
}
/** A repository of the agent's file, as an empty one in the attempt's folder: no work tree, hooks or settings. */
export type Repo = {
  url: string
  dir: string
  git: (args: string[], options?: Options) => Promise<{ code: number; out: string; said: string }>
  /** Ends the job if git does not succeed. */
  must: (args: string[], options?: Options) => Promise<string>
  /** The commits of these branches, where * matches any text; branches that do not exist are left out. */
  heads: (...branches: string[]) => Promise<Map<string, string>>
  /** The commit of this tag, also of an annotated one. */
  tag: (name: string) => Promise<string | undefined>
}

const BRANCH = /^(?!.*(\.\.|\/\/|\/\.|\.lock(\/|$)|\/$|\.$))[A-Za-z0-9][A-Za-z0-9._/-]{0,199}$/
const GRACE_S = 10
const MAX_LINE = 16 * 1024 * 1024

const repoOf = ({ file: { git: rules } }: Job, name: string) => {
  const repo = named(rules?.repos, name)
  if (!rules || !repo) throw refusal(`The agent's file names no repository "${name}".`)
  return { rules, repo }
}

/** The repository that the inputs of a job name. */
export const repoIn = (job: Job): string => String((job.work.inputs as Record<string, unknown>).repo)

/** Returns the member if it is the name of a branch, never an option; otherwise ends the job. */
export const asBranch = (member: string, branch: unknown): string => {
  if (typeof branch !== 'string' || !BRANCH.test(branch)) throw refusal(`"${member}" must be the name of a branch.`)
  return branch
}

/** Returns the name of a branch that the agent's file allows; otherwise ends the job. */
export const branchOf = (job: Job, name: string, allowed?: 'push' | 'merge'): string => {
  const branch = asBranch(name, (job.work.inputs as Record<string, unknown>)[name])
  const { repo } = repoOf(job, repoIn(job))
  if (allowed && !repo[allowed]?.some((pattern) => matcherOf(pattern)(branch))) {
    const does = allowed === 'push' ? 'push' : 'merge into'
    throw refusal(`The agent's file does not allow jobs to ${does} "${branch}".`)
  }
  return branch
}

/** Opens the repository of this name. */
export const openRepo = async (job: Job, name: string): Promise<Repo> => {
  const { rules, repo } = repoOf(job, name)
  const { url } = repo
  const keys = hostKeysOf(repo.host_keys ?? [])
  if (!keys || (url.startsWith('ssh:') && keys.length === 0))
    throw new Ended(failed('host_key', `The agent's file pins no host key for the repository "${name}".`, false))
  const dir = join(job.home, 'repo.git')
  const client = [job.file.ssh?.program ?? 'ssh', ...sshOptions(job, keys)]
  const env = {
    ...{
      GIT_DIR: dir,
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_CONFIG_GLOBAL: '/dev/null',
      GIT_TERMINAL_PROMPT: '0',
      LC_ALL: 'C',
    },
    ...{ GIT_ALLOW_PROTOCOL: 'ssh:https:file', GIT_SSH_VARIANT: 'ssh' },
    GIT_SSH_COMMAND: client.map((word) => `'${word}'`).join(' '),
  }
  const git: Repo['git'] = async (args, { stdin, acts = false, take, work_tree } = {}) => {
    let out = ''
    let said = ''
    const log: Job['log'] = (text, line) => {
      if (line?.stream === 'stdout' && take) return take(text)
      if (line?.stream === 'stdout') {
        out += `${text}\n`
        return
      }
      said = `${said}${job.mask(text, line)}\n`.slice(-4000)
      job.log(text, line)
    }
    const end = await runTool(job, {
      ...{ path: rules.program, args, cwd: job.home, grace_s: GRACE_S, log, max_line: MAX_LINE, aside: !acts },
      ...{ programs: job.file.ssh ? [job.file.ssh.program] : [], write: url.startsWith('/') ? [url] : [] },
      env: { ...env, ...(work_tree !== undefined && { GIT_WORK_TREE: work_tree }) },
      ...(stdin !== undefined && { stdin }),
    })
    const other = acts && isDone(end) ? undefined : stopped(end, `${basename(rules.program)} ${args[0]}`, !acts)
    if (other) throw new Ended(other)
    return { code: end.how === 'not_begun' ? 1 : (end.code ?? 1), out, said }
  }
  const must: Repo['must'] = async (args, options) => {
    const { code, out, said } = await git(args, options)
    if (code === 0) return out
    const fault = hostKeyFault(said, `The repository "${name}"`)
    if (fault !== undefined) throw new Ended(failed('host_key', `${fault} No change was made.`, false))
    throw new Ended(
      failed('tool_failed', `git ${args[0]} failed: ${said.trim().split('\n').at(-1)}. No change was made.`),
    )
  }
  await must(['init', '-q', '--bare', '--template=', dir])
  /** The refs of the remote repository that fit these patterns, with their commits. */
  const remote = async (patterns: string[]) => {
    const lines = (await must(['ls-remote', '--', url, ...patterns])).split('\n').filter(Boolean)
    return lines.map((line) => line.split('\t')).map(([sha = '', ref = '']): [string, string] => [ref, sha])
  }
  return {
    ...{ url, dir, git, must },
    heads: async (...branches) => {
      const found = await remote(branches.map((branch) => `refs/heads/${branch}`))
      return new Map(found.map(([ref, sha]) => [ref.replace('refs/heads/', ''), sha]))
    },
    tag: async (name) => {
      const ref = `refs/tags/${name}`
      const found = new Map(await remote([ref, `${ref}^{}`]))
      return found.get(`${ref}^{}`) ?? found.get(ref)
    },
  }
}
