import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Redis } from 'ioredis'

const INCLUDE = /^-- include: (\S+)$/gm

/** Reads a Lua script; a line `-- include: <file>` is replaced by that file, relative to the including one. */
const readScript = (file: URL): string =>
  readFileSync(file, 'utf8').replace(INCLUDE, (_line, path: string) => readScript(new URL(path, file)))

export type Script = (keys: readonly string[], args: readonly (string | number)[]) => Promise<unknown>
export type ScriptObserver = (name: string, seconds: number) => void

/**
 * Loads Lua scripts by file URL. A script runs by its hash; a server that lacks it (restart, failover) is sent the text
 * once. No call is repeated after any other failure: a script may have taken effect.
 */
export const loadScripts = <N extends string>(
  redis: Redis,
  files: Record<N, URL>,
  observe?: ScriptObserver,
): Record<N, Script> => {
  const scripts = {} as Record<N, Script>
  for (const [name, file] of Object.entries(files) as [N, URL][]) {
    const text = readScript(file)
    const sha = createHash('sha1').update(text).digest('hex')
    scripts[name] = async (keys, args) => {
      const started = performance.now()
      try {
        return await redis.evalsha(sha, keys.length, ...keys, ...args)
      } catch (error) {
        if (!(error as Error).message.startsWith('NOSCRIPT')) throw error
        return await redis.eval(text, keys.length, ...keys, ...args)
      } finally {
        observe?.(name, (performance.now() - started) / 1000)
      }
    }
  }
  return scripts
}

/** The rate-limit script shared by the gateway and session. */
export const LIMIT_SCRIPT = new URL('./limit.lua', import.meta.url)

const REFUSED = /^(READONLY|LOADING|MISCONF|OOM|NOREPLICAS|BUSY|MASTERDOWN|UNBLOCKED|NOAUTH|WRONGPASS)/

/** Whether a Redis failure means that it is unavailable or cannot write now, rather than a defect in a script. */
export const isRedisOutage = (error: unknown): boolean =>
  (error as Error).name !== 'ReplyError' || REFUSED.test((error as Error).message)
