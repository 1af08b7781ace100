import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { ConfigError } from '../shared/config.ts'
import { matcherOf } from '../shared/pattern.ts'
import { isObject, readPointer } from '../shared/pointer.ts'

/** Whether steps of a pool may resolve a reference to a secret. */
export type SecretRules = (pool: string, reference: string) => boolean

/**
 * The part of the workers' executor policy that says which secrets the steps of each pool may resolve, so that a plan is
 * refused before it is read instead of failing when it runs; the workers ask again (operations.md 7.2).
 */
export const loadSecretRules = (file: string): SecretRules => {
  let document: unknown
  try {
    document = parse(readFileSync(file, 'utf8'), { schema: 'core' })
  } catch (error) {
    throw new ConfigError(
      `WORKER__EXECUTORS__POLICY_FILE names ${file}, which cannot be read: ${(error as Error).message}`,
    )
  }
  const pools = readPointer(document, '/pools')
  if (!isObject(pools)) throw new ConfigError(`${file}/pools: must be an object.`)
  const rules = new Map(
    Object.entries(pools).map(([pool, own]) => {
      const secrets = readPointer(own, '/secrets')
      return [pool, (Array.isArray(secrets) ? secrets : []).map((pattern) => matcherOf(String(pattern)))]
    }),
  )
  return (pool, reference) => (rules.get(pool) ?? []).some((matches) => matches(reference))
}
