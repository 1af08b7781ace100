import { type ChildProcess, spawn } from 'node:child_process'
import { accessSync, constants, existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { gte } from 'semver'
import type { Screen } from '../base/screen.ts'

/** One way to obtain a program. `run` returns its path, or throws the reason why this way fails. */
export type Source = { what: string; run: (say: (text: string) => void) => Promise<string> }

/** No source had the program: names it, every try with its reason, and what a person can do. */
class MissingProgram extends Error {
  constructor(name: string, tries: { what: string; why: string }[], manual: string) {
    const list = tries.map(({ what, why }) => `\n    ${what}: ${why}`).join('')
    super(`${name} could not be found or installed. Tried:${list}\n  By hand: ${manual}`)
  }
}

/** Tries the sources in order and returns the first path. */
export const locate = async (name: string, sources: Source[], manual: string, screen: Screen): Promise<string> => {
  const tries: { what: string; why: string }[] = []
  for (const source of sources) {
    try {
      return await source.run((text) => screen.line(name, text))
    } catch (error) {
      tries.push({ what: source.what, why: (error as Error).message.trim().split('\n').slice(-3).join(' ') })
    }
  }
  throw new MissingProgram(name, tries, manual)
}

/** The program's full path, if it is on PATH. */
export const which = (program: string): string | undefined =>
  (process.env.PATH ?? '')
    .split(delimiter)
    .filter(Boolean)
    .map((folder) => join(folder, program))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK)
        return true
      } catch {
        return false
      }
    })

type RunOptions = {
  timeout_ms: number
  env?: NodeJS.ProcessEnv
  cwd?: string
  /** How many of the last lines an error contains. */
  lines?: number
  uid?: number
  gid?: number
}

/** The programs that run now; they end with this process. */
const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** Runs a program to its end and returns its output; throws with the last lines if it fails or is too slow. */
export const run = (
  command: string,
  args: string[],
  { timeout_ms, env, lines = 2, ...where }: RunOptions,
): Promise<string> =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env }, ...where })
    running.add(child)
    let text = ''
    const keep = (chunk: Buffer) => {
      text = (text + chunk.toString()).slice(-200_000)
    }
    child.stdout.on('data', keep)
    child.stderr.on('data', keep)
    const timer = setTimeout(() => child.kill('SIGKILL'), timeout_ms)
    child.on('error', (error) => {
      running.delete(child)
      reject(new Error(`${command}: ${error.message}`))
    })
    child.on('close', (code, signal) => {
      running.delete(child)
      clearTimeout(timer)
      if (code === 0) return resolve(text)
      const why = signal ? `not done within ${timeout_ms / 1000} s` : `exit code ${code}`
      const last = text.trim().split('\n').slice(-lines)
      reject(new Error(text ? `${why}: ${last.join(lines > 2 ? '\n' : ' ')}` : why))
    })
  })

/** The version that `program --version` prints, as x.y.z. */
const versionOf = async (program: string, args = ['--version']): Promise<string> => {
  const text = await run(program, args, { timeout_ms: 15_000 })
  const found = /\d+\.\d+\.\d+/.exec(text)?.[0]
  if (!found) throw new Error(`${program} reports no version`)
  return found
}

/** A server's programs by name, the oldest version that serves, and where a fetched one is kept. */
export type Wanted = { programs: string[]; minimum: string; fetched: () => string }

/** A program on PATH that is new enough. */
export const onPath = (programs: string[], minimum: string, args?: string[]): Source => ({
  what: `${programs.join(' or ')} on PATH`,
  run: async () => {
    const seen: string[] = []
    for (const program of programs) {
      const path = which(program)
      if (!path) continue
      const version = await versionOf(path, args)
      if (gte(version, minimum)) return path
      seen.push(`${path} is ${version}, older than ${minimum}`)
    }
    throw new Error(seen.join('; ') || 'not there')
  },
})

/** A program that an earlier start put into the cache. */
export const cached = (path: string): Source => ({
  what: `cache ${path}`,
  run: async () => {
    if (!existsSync(path)) throw new Error('empty')
    return path
  },
})
