import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Screen } from '../base/screen.ts'
import { createServerSecrets, ensureServers, startServers } from '../servers/up.ts'

/** Where the servers of a test run are, in the variables that tests and the stack read. */
export type TestEnv = { DATABASE_URL: string; REDIS_URL: string; NATS_URL: string; TEMPORAL_ADDRESS: string }

/** Runs work beside servers of its own, on free ports with temporary data, and stops and removes them afterwards. */
export const withTestServers = async <T>(
  screen: Screen,
  work: (env: TestEnv, dir: string) => Promise<T>,
  postgres_settings: Record<string, string> = {},
): Promise<T> => {
  const dir = mkdtempSync(join(tmpdir(), 'signalbox-test-'))
  chmodSync(dir, 0o755) // Postgres runs under another account when we are root
  try {
    const servers = await startServers({
      dir,
      programs: await ensureServers(screen),
      screen,
      plain: true,
      secrets: createServerSecrets([]),
      prefer_ports: { postgres: 0, redis: 0, nats: 0, temporal: 0, temporal_ui: 0 },
      postgres_settings: { max_connections: '400', ...postgres_settings },
    })
    try {
      const env = {
        DATABASE_URL: servers.postgres.admin_url,
        REDIS_URL: servers.redis.url(),
        NATS_URL: servers.nats.url(),
        TEMPORAL_ADDRESS: servers.temporal.address,
      }
      return await work(env, dir)
    } finally {
      await servers.stop()
    }
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

/** A test database lives for minutes: it need not outlive a power cut, and every kill of the server it does. */
export const FAST_POSTGRES = { fsync: 'off', full_page_writes: 'off' }
