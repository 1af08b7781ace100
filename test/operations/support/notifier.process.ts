import { loadOperationsConfig } from '../../../apps/operations/config.ts'
import type { Trust } from '../../../apps/operations/deps.ts'
import { startNotifier } from '../../../apps/operations/notifications/loop.ts'
import { loadLibrary } from '../../../apps/operations/packs/library.ts'
import { createDeps } from '../../../apps/operations/wire.ts'
import { createPrincipals } from '../../../apps/shared/auth/principals.ts'
import { createTelemetry } from '../../../apps/shared/telemetry.ts'
import { identityOf, type Person } from './platform.ts'

/** The notifier of operations alone, for a test that kills it: its settings and its people are in the environment. */
const { vars, people } = JSON.parse(process.env.NOTIFIER ?? '') as {
  vars: Record<string, string>
  people: Record<string, Person>
}
const identity = identityOf(people)
const trust = {
  principals: createPrincipals({ identityClient: identity as never, ttl_ms: 50, outage: 'internal_error' }),
  preferences: (userId: string) => identity.getPreferences({ userId }),
  isActive: async () => true,
  offerSignOut: async () => 'so1.token',
} as unknown as Trust
const telemetry = createTelemetry('operations')
startNotifier(createDeps(loadOperationsConfig(vars), trust, loadLibrary(), { telemetry }))
process.send?.('ready')
