import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ExecutorPolicy } from '../executors/policy.ts'

/** A reference that cannot be resolved, or that the pool may not resolve. */
export class SecretError extends Error {
  readonly kind: 'secret_missing' | 'refused'
  constructor(kind: SecretError['kind'], message: string) {
    super(message)
    this.kind = kind
  }
}

type Source = { secrets_dir: string; env: NodeJS.ProcessEnv; policy: ExecutorPolicy }
const REFERENCE = /^secret:\/\/(file|env)\/([A-Za-z0-9][A-Za-z0-9._-]*)#([A-Za-z0-9][A-Za-z0-9._-]*)$/

/**
 * Reads the values of a node's secrets at the last moment. `secret://file/name#version` is the file
 * `<secrets_dir>/name.version`, `secret://env/NAME#version` the variable NAME. Only those that the pool's policy lists.
 */
export const resolveSecrets = async (
  references: Record<string, unknown>,
  pool: string,
  source: Source,
): Promise<Record<string, string>> => {
  const resolved: Record<string, string> = {}
  for (const [name, reference] of Object.entries(references))
    resolved[name] = await resolve(String(reference), pool, source)
  return resolved
}

/** Throws a SecretError unless this pool's agents may resolve these references in the worker's place. */
export const allowSecrets = (references: Record<string, unknown>, pool: string, policy: ExecutorPolicy): void => {
  for (const reference of Object.values(references))
    if (!policy.mayResolve(pool, String(reference)))
      throw new SecretError('refused', `Pool ${pool} may not resolve ${reference}`)
}

const resolve = async (reference: string, pool: string, { secrets_dir, env, policy }: Source): Promise<string> => {
  const [, provider, name = '', version = ''] = REFERENCE.exec(reference) ?? []
  if (!provider) throw new SecretError('secret_missing', `"${reference}" is not a reference to a secret`)
  allowSecrets({ reference }, pool, policy)
  const value = provider === 'env' ? env[name] : await readSecret(join(secrets_dir, `${name}.${version}`))
  if (value === undefined) throw new SecretError('secret_missing', `There is no secret ${reference}`)
  return value
}

const readSecret = async (file: string): Promise<string | undefined> => {
  try {
    return (await readFile(file, 'utf8')).replace(/\r?\n$/, '')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
