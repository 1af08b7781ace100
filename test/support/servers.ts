import { chmodSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export type ServerName = 'postgres' | 'redis' | 'nats' | 'temporal'
const VARIABLES: Record<ServerName, string> = {
  postgres: 'DATABASE_URL',
  redis: 'REDIS_URL',
  nats: 'NATS_URL',
  temporal: 'TEMPORAL_ADDRESS',
}

/** A scratch folder that a server under another account can enter. */
export const scratchFolder = (): string => {
  const dir = mkdtempSync(join(tmpdir(), 'signalbox-stack-'))
  chmodSync(dir, 0o755)
  return dir
}

/** Runs work while the environment names no running server, so that the platform starts its own. */
export const withoutGivenServers = async <T>(names: readonly ServerName[], work: () => Promise<T>): Promise<T> => {
  const kept = new Map(names.map((name) => [VARIABLES[name], process.env[VARIABLES[name]]]))
  for (const variable of kept.keys()) delete process.env[variable]
  try {
    return await work()
  } finally {
    for (const [variable, value] of kept) if (value !== undefined) process.env[variable] = value
  }
}
