import type { Servers } from '../servers/up.ts'
import { type AppContext, tablePorts } from './apps.ts'
import type { Keys } from './keys.ts'

/** The wiring of the apps in docker-compose.yml: each listens on its port of the table and is reached by its name. */
export const containerContext = (dir: string, keys: Keys, servers: Servers, roles: boolean): AppContext => ({
  dir,
  keys,
  servers,
  roles,
  database: 'signalbox',
  ports: tablePorts(),
  network: { host: (app) => app, listen: '0.0.0.0' },
  fleet_port_base: 17_200,
  prefix: { nats: '', redis: '', queue: '' },
  overrides: {
    GATEWAY__CONSOLE__DIR: '/signalbox/console',
    WORKER__EXECUTORS__POLICY_FILE: '/signalbox/apps/platform/deploy/executor-policy.yaml',
  },
})
