import { createDb, type ONE_ACT } from '../../db/client.ts'
import { pruneKeys } from '../../db/command/keys.ts'
import { pruneAssertions } from '../../db/identity/machines.ts'
import { idempotency, outbox } from '../../db/identity/tables.ts'
import { pruneOutbox } from '../../db/outbox.ts'
import { startPruning } from '../../db/prune.ts'
import { followKilledKeys } from '../shared/auth/killed-keys.ts'
import { createPrincipals } from '../shared/auth/principals.ts'
import { accessVerifierOf, jwksOf, providersOf, registryOf } from '../shared/auth/trust.ts'
import { type Clock, systemClock } from '../shared/clock.ts'
import { secretKeysOf } from '../shared/config.ts'
import { Credential } from '../shared/contracts/gen/auth_pb.ts'
import { deriveKey, deriveKeys } from '../shared/data/digest.ts'
import { measurePool } from '../shared/process/pool.ts'
import { repeatUntilDone, startLoop } from '../shared/process/repeat.ts'
import { createRpcClient } from '../shared/rpc/client.ts'
import { audienceOf } from '../shared/service/scopes.ts'
import { createServiceSigner } from '../shared/service/tokens.ts'
import { createTelemetry } from '../shared/telemetry.ts'
import type { IdentityConfig } from './config.ts'
import type { IdentityDeps, Uses } from './deps.ts'
import { revokeUngiven } from './federation/rights.ts'
import { noteEnding, noteExpired, noteUnused } from './machines/ending.ts'
import { createIssuers } from './machines/foreign.ts'
import { principalMessage } from './principal.ts'
import { alignNext, queueReturned, reportStranded } from './scim/aligning.ts'
import { endLostFactors } from './users/factors.ts'

/** Longer than credential takes to answer, shorter than this app does. */
const PASSWORD_MS = 7500

/** Creates identity's dependencies. It reads its own principals from its own rows, not over the network. */
export const createDeps = (
  config: IdentityConfig,
  { clock = systemClock, patience }: { clock?: Clock; patience?: typeof ONE_ACT } = {},
): IdentityDeps => {
  const telemetry = createTelemetry('identity')
  const { db, pool, close } = createDb(config.IDENTITY__DATABASE__URL, { app: 'identity', ...patience })
  measurePool(telemetry, pool)
  const secrets = secretKeysOf(config.IDENTITY__SECRET__KEYS)
  const jwks = jwksOf(config, telemetry)
  const killed = followKilledKeys({
    url: config.IDENTITY__NATS__URL,
    prefix: config.SIGNALBOX__NATS__PREFIX,
    name: 'identity',
    keys: jwks,
    log: telemetry.log,
  })
  const keys = {
    fingerprint: deriveKeys(secrets, 'fingerprint'),
    audit: deriveKey(secrets[0], 'audit'),
    page: deriveKeys(secrets, 'page'),
  }
  const registry = registryOf(config, telemetry)
  const stopping = new AbortController()
  /** People have rights from a provider while the file gives them, however they sign in. */
  const followFile = async () => {
    await revokeUngiven({ db, keys, providers })
    await queueReturned({ db, providers })
  }
  const follow = () =>
    void repeatUntilDone(followFile, stopping.signal, (err) =>
      telemetry.log.warn({ err }, 'rights cannot follow the file of providers'),
    )
  const providers = providersOf(config, telemetry, follow)
  follow()
  const credential = createRpcClient(Credential, {
    telemetry,
    url: config.AUTH__RPC__CREDENTIAL_URL,
    signer: createServiceSigner({ name: 'identity', key_file: config.IDENTITY__SERVICE__KEY_FILE }),
    audience: audienceOf('credential'),
    timeout_ms: PASSWORD_MS,
  })
  const stopUpkeep = startUpkeep({ db, clock, credential, keys, providers, telemetry }, followFile)
  return {
    config,
    telemetry,
    clock,
    issuers: createIssuers(config.AUTH__MACHINES__ISSUERS),
    db,
    pool,
    keys,
    registry,
    providers,
    jwks,
    verifier: accessVerifierOf(config, jwks, clock),
    // No cache: rights granted or revoked here take effect here at once.
    principals: createPrincipals({
      identityClient: { getPrincipal: async ({ userId }) => ({ principal: await principalMessage(db, userId) }) },
      ttl_ms: -1,
      clock,
    }),
    credential,
    close: async () => {
      stopping.abort()
      await stopUpkeep()
      jwks.close()
      await killed.stop()
      registry.close()
      providers.stop()
      await close()
    },
  }
}

/** Removes old rows, publishes endings, and lets rights follow their groups; returns the function that ends it. */
const startUpkeep = (
  {
    db,
    clock,
    credential,
    keys,
    providers,
    telemetry,
  }: Uses<'db' | 'clock' | 'credential' | 'keys' | 'providers' | 'telemetry'>,
  followFile: () => Promise<unknown>,
) => {
  const { log } = telemetry
  const stopPruning = startPruning(
    [
      () => pruneKeys(db, idempotency),
      () => pruneOutbox(db, outbox),
      () => pruneAssertions(db),
      () => noteEnding({ db, clock, keys }),
      () => noteUnused({ db, clock, keys }),
      () => noteExpired({ db, clock, keys }),
      () => reportStranded({ db, providers, telemetry }),
      followFile,
    ],
    (err) => log.warn({ err }, 'old rows cannot be removed, or an expiry cannot be published'),
  )
  const aligning = startLoop('identity_aligning', () => alignNext({ db, keys, providers }), {
    every_ms: 1000,
    failed: (err) => log.warn({ err }, 'the rights of people in large groups cannot follow'),
  })
  const ending = startLoop('identity_factors', () => endLostFactors({ db, credential }), {
    every_ms: 1000,
    failed: (err) => log.warn({ err }, 'credential cannot end the factors of people in recovery'),
  })
  return async () => {
    stopPruning()
    await Promise.all([aligning.stop(), ending.stop()])
  }
}
