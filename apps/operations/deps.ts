import type pg from 'pg'
import type { Db } from '../../db/client.ts'
import type { ReadFence } from '../../db/restore.ts'
import type { Principals } from '../shared/auth/principals.ts'
import type { AccessVerifier } from '../shared/auth/user-tokens.ts'
import type { Clock } from '../shared/clock.ts'
import type { loadPayloadCodec } from '../shared/codec/payload.ts'
import type { Pages } from '../shared/http/pages.ts'
import type { PrivateKey } from '../shared/service/keys.ts'
import type { Registry } from '../shared/service/tokens.ts'
import type { Telemetry } from '../shared/telemetry.ts'
import type { ArtifactStore } from './agents/store.ts'
import type { CatalogClient } from './catalog/client.ts'
import type { CatalogProjection } from './catalog/projection.ts'
import type { Outcomes } from './command/outcomes.ts'
import type { OperationsConfig } from './config.ts'
import type { Library } from './graph/types.ts'
import type { NatsHolder } from './nats.ts'
import type { Channels } from './notifications/channels/channels.ts'
import type { NotifyKeys } from './notifications/keys.ts'
import type { loadExecutorRules } from './packs/executors.ts'
import type { Approvers, createAdministrators, createHasMembers } from './people.ts'
import type { Policies } from './policies/cedar.ts'
import type { PlanPolicies } from './policies/plans.ts'

/** The passkey that signed, as evidence states it. */
export type SignedBy = { credential_id: string; jwk: Record<string, string> }
/** Identity's answers about passkeys; both calls throw 503 while it is away. */
export type Passkeys = {
  of: (user_id: string) => Promise<{ rp_id: string; credential_ids: string[] }>
  /** `undefined` if this is not this person's passkey's answer to the challenge. */
  verify: (user_id: string, challenge: string, assertion: string) => Promise<SignedBy | undefined>
}

/** Whether a session is neither ended nor expired; throws 503 while session is away. */
export type IsActive = (user_id: string, session_id: string) => Promise<boolean>

/** A token whose link ends all sessions of the person, once; throws while session is away. */
export type OfferSignOut = (user_id: string) => Promise<string>

/** The sources of trust: how user tokens, principals and service tokens are checked. Tests pass their own keys here. */
export type Trust = {
  verifier: AccessVerifier
  principals: Principals
  passkeys: Passkeys
  isActive: IsActive
  offerSignOut: OfferSignOut
  approvers: Approvers
  administrators: ReturnType<typeof createAdministrators>
  /** The zone and language that a person has chosen; empty if none. Throws while identity is away. */
  preferences: (user_id: string) => Promise<{ zone: string; language: string }>
  hasMembers: ReturnType<typeof createHasMembers>
  registry: Registry
  /** The source that fills the projection of the catalog. */
  catalog: CatalogClient
  /** Signs exported evidence. */
  evidence_key: PrivateKey
  close: () => void
}

/** All dependencies of operations; each function takes its part. Built by wire.ts. */
export type OperationsDeps = ReturnType<typeof loadExecutorRules> & {
  config: OperationsConfig
  telemetry: Telemetry
  clock: Clock
  trust: Trust
  db: Db
  pool: pg.Pool
  closeDb: () => Promise<void>
  /** The acts that must not resume after a restore of the database (reliability.md 4.13). */
  fence: ReadFence
  nats: NatsHolder
  keys: { fingerprint: [Buffer, ...Buffer[]]; audit: Buffer }
  pages: Pages
  library: Library
  projection: CatalogProjection
  policies: Policies
  planPolicies: PlanPolicies
  artifacts: ArtifactStore
  /** The channels to people outside; undefined if notifications are off. */
  channels: Channels | undefined
  notifyKeys: NotifyKeys
  outcomes: Outcomes
  payload_codec: ReturnType<typeof loadPayloadCodec>
  cooloff_s: number
  lookback_s: number
}
/** The dependencies that one function uses. */
export type Uses<K extends keyof OperationsDeps> = Pick<OperationsDeps, K>

/** For policy decisions on an operation. */
export type PolicyDeps = Uses<'clock' | 'cooloff_s' | 'policies'>
/** For making plans. */
export type PlanningDeps = Uses<
  'clock' | 'config' | 'fetchesWork' | 'hasPool' | 'library' | 'mayResolve' | 'planPolicies' | 'programs'
>
/** For taking commands; to wait for their outcome, see CommandDeps. */
export type AcceptDeps = Uses<'config' | 'db' | 'fence' | 'keys' | 'nats' | 'telemetry'>
/** For taking commands and answering with their outcome. */
export type CommandDeps = AcceptDeps & Uses<'outcomes'>
/** For commands that plan again on the current state of their targets. */
export type ReplanDeps = PlanningDeps & PolicyDeps & Uses<'db' | 'projection' | 'trust'>
/** For freezes that change while operations run. */
export type FreezeDeps = AcceptDeps & PolicyDeps & Uses<'library'>
