import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentScreen } from '../../apps/platform/screen.ts'
import { createServerSecrets, ensureServers, type Servers, startServers } from '../../apps/platform/servers.ts'

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

/** Servers of its own for a test that kills or pauses them; the servers of the run stay as they are. */
export type OwnServers = Servers & { dir: string }

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

const ALL: ServerName[] = ['postgres', 'redis', 'nats', 'temporal']

/** Starts Postgres, Redis, NATS and Temporal on free ports with temporary data. */
export const startOwnServers = async (): Promise<OwnServers> => {
  const dir = scratchFolder()
  const servers = await withoutGivenServers(ALL, async () =>
    startServers({
      dir,
      programs: await ensureServers(silentScreen),
      secrets: createServerSecrets([]),
      plain: true,
      prefer_ports: { postgres: 0, redis: 0, nats: 0, temporal: 0, temporal_ui: 0 },
    }),
  )
  const stop = async () => {
    await servers.stop()
    rmSync(dir, { recursive: true, force: true })
  }
  return { ...servers, dir, stop }
}
