import { randomBytes } from 'node:crypto'
import { create, type JsonObject } from '@bufbuild/protobuf'
import { TimestampSchema, timestampMs } from '@bufbuild/protobuf/wkt'
import { Code, ConnectError, type HandlerContext } from '@connectrpc/connect'
import {
  type CreateSessionRequest,
  type RefreshTokensRequest,
  ResponseMode,
  type RevokeUserSessionsRequest,
  Session,
  SessionRecordSchema,
  UserStatus,
} from '../../shared/contracts/gen/auth_pb.ts'
import { AppError } from '../../shared/errors.ts'
import { isUuid, uuidv7 } from '../../shared/ids.ts'
import { type RpcService, rpcContext, rpcService, throwFromRpc, withRequestId } from '../../shared/rpc/client.ts'
import { describeClient } from '../browser/client.ts'
import type { SessionDeps } from '../deps.ts'
import { unlockUser } from '../sessions/admin.routes.ts'
import { endSession, endUserSessions, isOver } from '../sessions/end.ts'
import type { RevokeReason, SessionRecord } from '../store/store.ts'
import { RETRY_KEY_MIN } from './grants.ts'
import { noteEvicted } from './login.ts'
import { refresh } from './refresh.ts'

const REASONS: ReadonlySet<string> = new Set<RevokeReason>([
  'logout',
  'suspicious',
  'password_changed',
  'user_disabled',
  'user_deleted',
  'admin',
  'credential_revoked',
])
const METADATA_BYTES = 2048

/** The operations of the session component that other components call. */
export const sessionRpc = (deps: SessionDeps): RpcService =>
  rpcService(
    Session,
    {
      createSession: 'sessions:create',
      refreshTokens: 'sessions:refresh',
      revokeSession: 'sessions:revoke',
      revokeUserSessions: 'sessions:revoke',
      getSessionState: 'sessions:read',
      // Not a scope of its own: a registry from before would then refuse every call of operations.
      offerSignOut: 'sessions:read',
    },
    {
      createSession: (request, context) => createSession(deps, request, context),
      refreshTokens: (request, context) => refreshTokens(deps, request, context),
      revokeSession: async ({ sessionId, reason, requestId, userId }, context) => {
        const session_id = uuidOf(sessionId, 'session_id')
        const user = userId ? { user_id: uuidOf(userId, 'user_id') } : {}
        await endSession(deps, { session_id, ...user }, reasonOf(reason), byService(context, requestId))
        return {}
      },
      revokeUserSessions: (request, context) => revokeUserSessions(deps, request, context),
      getSessionState: async ({ userId, sessionId }) => {
        deps.revocations.assertApplied()
        const found = await deps.store.get(uuidOf(userId, 'user_id'), uuidOf(sessionId, 'session_id'))
        return { active: found?.state === 'active' && !isOver(deps, found) }
      },
      offerSignOut: async ({ userId }) => {
        const token = `so1.${randomBytes(32).toString('base64url')}`
        await deps.flows.offerSignOut(token, uuidOf(userId, 'user_id'))
        return { token }
      },
    },
  )

const createSession = async (
  deps: SessionDeps,
  { userId, userAgent, ipAddress, metadata, mode }: CreateSessionRequest,
  context: HandlerContext,
) => {
  deps.revocations.assertApplied()
  const { request_id } = rpcContext(context)
  const { user } = await deps.identity
    .getUser({ id: uuidOf(userId, 'user_id') }, withRequestId(request_id))
    .catch(throwFromRpc('identity'))
  if (user?.status !== UserStatus.ACTIVE) throw new ConnectError('there is no such active user', Code.InvalidArgument)
  if (mode === ResponseMode.UNSPECIFIED) throw new ConnectError('mode is not stated', Code.InvalidArgument)
  const session_id = uuidv7()
  const described = describeClient(userAgent, ipAddress)
  const { created_at, expires_at, evicted } = await deps.store.create(
    {
      session_id,
      user_id: userId,
      username: user.username,
      mode: mode === ResponseMode.COOKIE ? 'cookie' : 'json',
      ...described,
      metadata: metadataOf(metadata),
    },
    deps.config.SESSION__CAP__PER_USER,
    { actor_type: 'service', actor_id: rpcContext(context).service.name, request_id },
  )
  await noteEvicted(deps, evicted, request_id)
  const client = { user_agent: described.user_agent ?? null, ip_address: ipAddress ?? null, metadata: metadata ?? null }
  return {
    session: messageOf(
      { session_id, user_id: userId, created_at, expires_at, last_used_at: created_at, ...client },
      mode,
    ),
  }
}

const refreshTokens = async (
  deps: SessionDeps,
  { refreshToken, retryKey, userAgent, ipAddress }: RefreshTokensRequest,
  context: HandlerContext,
) => {
  deps.revocations.assertApplied()
  if (retryKey !== undefined && retryKey.length < RETRY_KEY_MIN)
    throw new ConnectError(`retry_key must have at least ${RETRY_KEY_MIN} characters`, Code.InvalidArgument)
  const pair = await refresh(deps, {
    refresh_token: refreshToken,
    mode: 'json',
    csrf_token: undefined,
    retry_key: retryKey,
    client: describeClient(userAgent, ipAddress),
    request_id: rpcContext(context).request_id,
  }).catch((error: unknown) => {
    // Here the token is the payload; the caller's own identity is its service token.
    throw error instanceof AppError && error.category === 'invalid_token'
      ? new ConnectError(error.message, Code.InvalidArgument)
      : error
  })
  return { accessToken: pair.access_token, refreshToken: pair.refresh_token }
}

const revokeUserSessions = async (deps: SessionDeps, request: RevokeUserSessionsRequest, context: HandlerContext) => {
  const { userId, keepSessionId, reason, requestId, clearLockout, actorId, passwordVersion, occurredAt } = request
  const by =
    actorId && isUuid(actorId)
      ? { actor_type: 'user' as const, actor_id: actorId, request_id: byService(context, requestId).request_id }
      : byService(context, requestId)
  const user = {
    user_id: uuidOf(userId, 'user_id'),
    ...(keepSessionId && { keep_session_id: uuidOf(keepSessionId, 'keep_session_id') }),
    ...(passwordVersion > 0 && { password_version: passwordVersion }),
    ...(occurredAt && { occurred_at: timestampMs(occurredAt) * 1000 }),
  }
  const revoked = await endUserSessions(deps, user, reasonOf(reason), by)
  if (clearLockout) await unlockUser(deps, userId, by)
  return { revoked }
}

const uuidOf = (text: string, field: string): string => {
  if (!isUuid(text)) throw new ConnectError(`${field} is not a UUID`, Code.InvalidArgument)
  return text
}

const reasonOf = (reason: string): RevokeReason => {
  if (!REASONS.has(reason)) throw new ConnectError(`there is no reason ${JSON.stringify(reason)}`, Code.InvalidArgument)
  return reason as RevokeReason
}

const metadataOf = (metadata: JsonObject | undefined): string | undefined => {
  const text = metadata && JSON.stringify(metadata)
  if (text && Buffer.byteLength(text) > METADATA_BYTES)
    throw new ConnectError('metadata is longer than 2 KiB', Code.InvalidArgument)
  return text
}

const byService = (context: HandlerContext, request_id: string) => ({
  actor_type: 'service' as const,
  actor_id: rpcContext(context).service.name,
  request_id: request_id || rpcContext(context).request_id,
})

type Shown = Pick<
  SessionRecord,
  'session_id' | 'user_id' | 'created_at' | 'expires_at' | 'last_used_at' | 'user_agent' | 'ip_address'
> & { metadata: JsonObject | null }

/** From microseconds since the epoch. */
const timestampOf = (us: number) =>
  create(TimestampSchema, { seconds: BigInt(Math.floor(us / 1_000_000)), nanos: (us % 1_000_000) * 1000 })

/** The record as a message, without the hash of the refresh token, which never leaves the store. */
const messageOf = (record: Shown, mode: ResponseMode) =>
  create(SessionRecordSchema, {
    id: record.session_id,
    userId: record.user_id,
    createdAt: timestampOf(record.created_at),
    expiresAt: timestampOf(record.expires_at),
    lastUsedAt: timestampOf(record.last_used_at),
    ...(record.user_agent !== null && { userAgent: record.user_agent }),
    ...(record.ip_address !== null && { ipAddress: record.ip_address }),
    ...(record.metadata !== null && { metadata: record.metadata }),
    mode,
  })
