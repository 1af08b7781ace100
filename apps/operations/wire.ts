import type { Client } from '@connectrpc/connect'
import { createDb } from '../../db/client.ts'
import { createFence } from '../../db/restore.ts'
import { followKilledKeys } from '../shared/auth/killed-keys.ts'
import { createPrincipals } from '../shared/auth/principals.ts'
import { accessVerifierOf, jwksOf, registryOf } from '../shared/auth/trust.ts'
import { type Clock, systemClock } from '../shared/clock.ts'
import { loadPayloadCodec } from '../shared/codec/payload.ts'
import { secretKeysOf } from '../shared/config.ts'
import { Identity, Session } from '../shared/contracts/gen/auth_pb.ts'
import { deriveKey, deriveKeys } from '../shared/data/digest.ts'
import { createPages } from '../shared/http/pages.ts'
import { measurePool } from '../shared/process/pool.ts'
import { createRpcClient, throwFromRpc } from '../shared/rpc/client.ts'
import { readKeyFile } from '../shared/service/keys.ts'
import { createServiceSigner } from '../shared/service/tokens.ts'
import { createTelemetry, type Telemetry } from '../shared/telemetry.ts'
import { createArtifactStore } from './agents/store.ts'
import { createCatalogClient } from './catalog/client.ts'
import { createCatalogProjection } from './catalog/projection.ts'
import { createOutcomes } from './command/outcomes.ts'
import type { OperationsConfig } from './config.ts'
import type { IsActive, OperationsDeps, Passkeys, Trust } from './deps.ts'
import type { Library } from './graph/types.ts'
import { createRequestedIntent } from './intents/requested.ts'
import { createNatsHolder } from './nats.ts'
import { createChannels } from './notifications/channels/channels.ts'
import { createNotifyKeys } from './notifications/keys.ts'
import { loadExecutorRules } from './packs/executors.ts'
import { createAdministrators, createApprovers, createHasMembers } from './people.ts'
import { loadPolicies } from './policies/cedar.ts'
import { loadPlanPolicies } from './policies/plans.ts'

/** Creates all dependencies of the routes from one configuration: opens the database pool, waits for no other app. */
export const createDeps = (
  config: OperationsConfig,
  trust: Trust,
  library: Library,
  options: { telemetry?: Telemetry; clock?: Clock } = {},
): OperationsDeps => {
  const { telemetry = createTelemetry('operations'), clock = systemClock } = options
  const { db, pool, close } = createDb(config.OPERATIONS__DATABASE__URL, { app: 'operations', max: 20 })
  measurePool(telemetry, pool)
  const secrets = secretKeysOf(config.OPERATIONS__SECRET__KEYS)
  const nats = createNatsHolder(config.OPERATIONS__NATS__URL, config.SIGNALBOX__NATS__PREFIX, telemetry.log)
  const decisions = telemetry.histogram('signalbox_policy_decision_seconds', 'Time of one decision by the policies.')
  return {
    config,
    telemetry,
    clock,
    trust,
    db,
    pool,
    closeDb: close,
    fence: createFence(db, 'operations'),
    nats,
    keys: { fingerprint: deriveKeys(secrets, 'fingerprint'), audit: deriveKey(secrets[0], 'audit') },
    pages: createPages(deriveKeys(secrets, 'page')),
    library,
    projection: createCatalogProjection({
      db,
      catalog: trust.catalog,
      log: telemetry.log,
      createIntent: createRequestedIntent,
    }),
    policies: loadPolicies(config.OPERATIONS__POLICY__DIR, (seconds) => decisions.observe(seconds)),
    planPolicies: loadPlanPolicies(config.OPERATIONS__POLICY__DIR),
    ...loadExecutorRules(config.WORKER__EXECUTORS__POLICY_FILE),
    artifacts: createArtifactStore(config.OPERATIONS__ARTIFACTS__DIR),
    channels: createChannels(config),
    notifyKeys: createNotifyKeys(secrets),
    outcomes: createOutcomes(db, telemetry.log),
    payload_codec: loadPayloadCodec('OPERATIONS__TEMPORAL__PAYLOAD_KEYS', config.OPERATIONS__TEMPORAL__PAYLOAD_KEYS),
    cooloff_s: config.OPERATIONS__CANCEL__COOLOFF_S,
    lookback_s: config.OPERATIONS__PROVENANCE__LOOKBACK_S,
  }
}
const createPasskeys = (identity: Client<typeof Identity>): Passkeys => ({
  of: async (userId) => {
    const { rpId, passkeys } = await identity.listPasskeys({ userId }).catch(throwFromRpc('identity'))
    return { rp_id: rpId, credential_ids: passkeys.map(({ credentialId }) => credentialId) }
  },
  verify: async (userId, challenge, assertion) => {
    const asked = { userId, challenge, assertion }
    const { passkey } = await identity.verifyAssertion(asked).catch(throwFromRpc('identity'))
    return passkey && { credential_id: passkey.credentialId, jwk: JSON.parse(passkey.jwk) as Record<string, string> }
  },
})

const createIsActive =
  (session: Client<typeof Session>): IsActive =>
  async (userId, sessionId) => {
    const { active } = await session.getSessionState({ userId, sessionId }).catch(throwFromRpc('session'))
    return active
  }

/** Trust in a running system: token's keys, identity's principals, the registry of services. */
export const createTrust = (config: OperationsConfig, telemetry: Telemetry): Trust => {
  const jwks = jwksOf(config, telemetry)
  void jwks.start()
  const killed = followKilledKeys({
    url: config.OPERATIONS__NATS__URL,
    prefix: config.SIGNALBOX__NATS__PREFIX,
    name: 'operations-keys',
    keys: jwks,
    log: telemetry.log,
  })
  const signer = createServiceSigner({ name: 'operations', key_file: config.OPERATIONS__SERVICE__KEY_FILE })
  const identityClient = createRpcClient(Identity, {
    telemetry,
    url: config.AUTH__RPC__IDENTITY_URL,
    signer,
    audience: 'identity-internal',
  })
  const sessionClient = createRpcClient(Session, {
    telemetry,
    url: config.AUTH__RPC__SESSION_URL,
    signer,
    audience: 'session-internal',
  })
  const registry = registryOf(config, telemetry)
  return {
    verifier: accessVerifierOf(config, jwks),
    principals: createPrincipals({ identityClient, outage: 'internal_error' }),
    passkeys: createPasskeys(identityClient),
    isActive: createIsActive(sessionClient),
    offerSignOut: async (userId) => (await sessionClient.offerSignOut({ userId }).catch(throwFromRpc('session'))).token,
    approvers: createApprovers(identityClient),
    administrators: createAdministrators(identityClient),
    preferences: (userId) => identityClient.getPreferences({ userId }).catch(throwFromRpc('identity')),
    hasMembers: createHasMembers(identityClient),
    registry,
    evidence_key: readKeyFile('OPERATIONS__EVIDENCE__KEY_FILE', config.OPERATIONS__EVIDENCE__KEY_FILE),
    catalog: createCatalogClient(config.OPERATIONS__CATALOG__URL, signer),
    close: () => {
      jwks.close()
      void killed.stop()
      registry.close()
    },
  }
}
