import { userInfo } from 'node:os'
import { createDb, type Db } from '../../../db/client.ts'
import { signalboxDir } from '../base/paths.ts'
import { loadAppEnv } from '../run/app-env.ts'

/** Something that a person can mend by reading it: printed as one line. */
export class OpsError extends Error {}

/** A setting of an app: from the environment, or as the running platform of this folder wrote it down. */
export const settingOf = (app: string, name: string): string => {
  const variable = `${app.toUpperCase()}__${name}`
  if (!process.env[variable]) loadAppEnv(signalboxDir(), app)
  const value = process.env[variable]
  if (!value) throw new OpsError(`${variable} is not set, and no platform has run on ${signalboxDir()}.`)
  return value
}

const LONG_MS = 60_000

/** Works on the database as an app does: with its own role and rights. */
export const withDb = async <T>(app: string, work: (db: Db) => Promise<T>): Promise<T> => {
  const { db, close } = createDb(settingOf(app, 'DATABASE__URL'), { app: 'ops', max: 4, statement_timeout_ms: LONG_MS })
  try {
    return await work(db)
  } catch (error) {
    if (isAway(error)) throw new OpsError('Postgres does not answer: these verbs work beside the running platform.')
    throw error
  } finally {
    await close()
  }
}

const isAway = (error: unknown): boolean => {
  const { code, cause } = error as { code?: string; cause?: unknown }
  return code === 'ECONNREFUSED' || code === '57P03' || (cause !== undefined && isAway(cause))
}

/** The actor that the audit log names for these commands. */
export const operator = (): string => `ops:${userInfo().username}`
