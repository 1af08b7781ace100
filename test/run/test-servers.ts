import { ensureInstallation } from '../../apps/platform/base/installation.ts'
import type { Managed } from '../../apps/platform/base/process.ts'
import type { Screen } from '../../apps/platform/base/screen.ts'
import { createServerSecrets, ensureServers, startServers } from '../../apps/platform/servers/up.ts'
import { withRunFolder } from './run-folder.ts'

/** The addresses of a test run's servers, in the variables that tests and the stack read. */
export type TestEnv = { DATABASE_URL: string; REDIS_URL: string; NATS_URL: string; TEMPORAL_ADDRESS: string }

/**
 * Runs work next to its own servers, on free ports with temporary data. Stops and removes them afterward, even if a
 * signal ends the run early.
 */
export const withTestServers = <T>(
  screen: Screen,
  work: (env: TestEnv, dir: string, signal: AbortSignal) => Promise<T>,
  postgres_settings: Record<string, string> = {},
): Promise<T> =>
  withRunFolder(async (dir, signal) => {
    const programs = await ensureServers(screen)
    const begun: Managed[] = []
    signal.addEventListener('abort', () => {
      for (const child of begun) void child.stop()
    })
    const servers = await startServers({
      dir,
      // The tests use the namespace that every engine has.
      installation: { ...ensureInstallation(dir), namespace: 'default' },
      programs,
      screen,
      plain: true,
      secrets: createServerSecrets([]),
      prefer_ports: { postgres: 0, redis: 0, nats: 0, temporal: 0, temporal_ui: 0 },
      postgres_settings: { max_connections: '400', ...postgres_settings },
      begun: (child) => {
        signal.throwIfAborted()
        begun.push(child)
      },
    })
    try {
      const env = {
        DATABASE_URL: servers.postgres.admin_url,
        REDIS_URL: servers.redis.url(),
        NATS_URL: servers.nats.url(),
        TEMPORAL_ADDRESS: servers.temporal.address,
      }
      return await work(env, dir, signal)
    } finally {
      await servers.stop()
    }
  })

/** A test database lives for minutes: it need not survive a power cut, and it survives every kill of the server. */
export const FAST_POSTGRES = { fsync: 'off', full_page_writes: 'off' }
