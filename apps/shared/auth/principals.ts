import type { Timestamp } from '@bufbuild/protobuf/wkt'
import { timestampDate } from '@bufbuild/protobuf/wkt'
import { type CallOptions, Code, ConnectError } from '@connectrpc/connect'
import { type Clock, systemClock } from '../clock.ts'
import { type Principal as PrincipalMessage, UserKind, UserStatus } from '../contracts/gen/auth_pb.ts'
import { AppError, unavailable } from '../errors.ts'
import type { ActionKind } from '../http/pressure.ts'
import { createJoiner } from '../process/lines.ts'
import { insisting } from '../rpc/client.ts'
import { type Permission, ROLES_OF } from './permissions.ts'
import { type Grant, permissionsIn, scopeOf } from './scope.ts'

/** A person or a machine, with their current rights. */
export type Principal = {
  user: { id: string; username: string; status: 'ACTIVE' | 'DISABLED' | 'DELETED'; kind: 'person' | 'machine' }
  grants: Grant[]
  group_keys: string[]
  /** When and by whom the person was added to each group, and their credential last created or reset. */
  memberships: { group_key: string; since: string | null; by: readonly string[] }[]
  reset: { at: string; by: readonly string[] } | null
  /** An administrator may know the credential, so the account must not decide or administer. */
  renewal_required: boolean
  /** Two administrators have ended its ways in: until its person enrols, it makes no request. */
  recovering?: boolean
  /** For a machine: the people who answer for it. Where four eyes are required, its acts count as theirs. */
  behind: readonly string[]
  roles: string[]
  permissions: ReadonlySet<Permission>
  version: number
}

/** The calls of identity's client that are needed (rpc.ts). */
export type PrincipalSource = {
  getPrincipal: (
    request: { userId: string },
    options?: CallOptions,
  ) => Promise<{ principal?: PrincipalMessage | undefined }>
}

const STOPPING_STALE_MS = 15 * 60_000
const MAX_ENTRIES = 10_000

type Entry = { principal: Principal | undefined; at: number }

/**
 * Principals of the callers, at most `ttl_ms` old, so that a removed right is gone within that time, or at once through
 * `drop`. While identity is away, stopping acts (kind S) use a principal of up to 15 min; all else is 503.
 */
export const createPrincipals = (options: {
  identityClient: PrincipalSource
  ttl_ms?: number
  clock?: Clock
  monotonic?: () => number
  outage?: 'unavailable' | 'internal_error'
}) => {
  const {
    identityClient,
    ttl_ms = 5000,
    clock = systemClock,
    monotonic = () => performance.now(),
    outage = 'unavailable',
  } = options
  const entries = new Map<string, Entry>()
  const inFlight = new Map<string, Promise<Principal | undefined>>()
  let drops = 0

  const load = async (user_id: string, kind: ActionKind): Promise<Principal | undefined> => {
    const before = drops
    const at = monotonic()
    const { principal } = await identityClient.getPrincipal({ userId: user_id }, kind === 'S' ? insisting() : {})
    const read = principal && principalOf(principal)
    // An answer overtaken by a drop may already be wrong: it serves only this request, and the next one asks again.
    if (drops === before) {
      entries.delete(user_id)
      if (entries.size >= MAX_ENTRIES) entries.delete(entries.keys().next().value as string)
      entries.set(user_id, { principal: read, at })
    }
    return read
  }

  const loadOnce = (user_id: string, kind: ActionKind) => {
    const running = inFlight.get(user_id)
    if (running) return running
    const started = load(user_id, kind).finally(() => {
      if (inFlight.get(user_id) === started) inFlight.delete(user_id)
    })
    inFlight.set(user_id, started)
    return started
  }

  const asked = createJoiner(async (user_id, all: readonly undefined[]) => {
    const read = await load(user_id, 'A')
    return all.map(() => read)
  })

  return {
    /** Returns the principal of a user; `undefined` if there is no such user. Throws 503 if identity cannot answer. */
    get: async (user_id: string, kind: ActionKind = 'R'): Promise<Principal | undefined> => {
      const entry = entries.get(user_id)
      if (entry && monotonic() - entry.at <= ttl_ms) return current(entry.principal, clock.now())
      try {
        return current(await loadOnce(user_id, kind), clock.now())
      } catch (error) {
        if (kind === 'S' && entry && entries.has(user_id) && monotonic() - entry.at <= STOPPING_STALE_MS) {
          return current(entry.principal, clock.now())
        }
        throw outageOf(error, outage)
      }
    },
    /** Returns identity's current principal, bypassing the cache. Throws 503 if identity cannot answer. */
    ask: async (user_id: string): Promise<Principal | undefined> => {
      try {
        return current(await asked(user_id, undefined), clock.now())
      } catch (error) {
        throw outageOf(error, outage)
      }
    },
    /** Removes these users, or all, from the cache; the next request asks identity. */
    drop: (user_ids: readonly string[] | 'all'): void => {
      drops += 1
      if (user_ids === 'all') {
        entries.clear()
        inFlight.clear()
        return
      }
      for (const user_id of user_ids) {
        entries.delete(user_id)
        inFlight.delete(user_id)
      }
    },
  }
}
export type Principals = ReturnType<typeof createPrincipals>

const outageOf = (error: unknown, outage: 'unavailable' | 'internal_error') =>
  error instanceof AppError ? error : unavailable(`Roles cannot currently be read (${codeName(error)}).`, error, outage)

const codeName = (error: unknown) => (error instanceof ConnectError ? Code[error.code] : 'no answer')

/** Leaves out grants that have ended, and derives roles and permissions from the rest. */
const current = (principal: Principal | undefined, now: Date): Principal | undefined => {
  if (!principal?.grants.some((grant) => hasEnded(grant, now))) return principal
  return withGrants(
    principal,
    principal.grants.filter((grant) => !hasEnded(grant, now)),
  )
}

const hasEnded = ({ expires_at }: Grant, now: Date) => expires_at !== null && Date.parse(expires_at) <= now.getTime()

/** No account holds a role that its kind must not have, whatever its groups were granted. */
const withGrants = (principal: Omit<Principal, 'grants' | 'roles' | 'permissions'>, held: Grant[]): Principal => {
  const grants = held.filter(({ role }) => ROLES_OF[principal.user.kind].has(role))
  const roles = [...new Set(grants.map((grant) => grant.role))].sort()
  return { ...principal, grants, roles, permissions: permissionsIn(grants) }
}

const STATUS = {
  [UserStatus.ACTIVE]: 'ACTIVE',
  [UserStatus.DISABLED]: 'DISABLED',
  [UserStatus.DELETED]: 'DELETED',
} as const

/** Reads identity's message. A status that this build does not know counts as not ACTIVE. */
export const principalOf = ({
  user,
  grants,
  groupKeys,
  version,
  memberships,
  reset,
  renewalRequired,
  recovering,
  behind,
}: PrincipalMessage): Principal =>
  withGrants(
    {
      user: {
        id: user?.id ?? '',
        username: user?.username ?? '',
        status: STATUS[user?.status as keyof typeof STATUS] ?? 'DISABLED',
        kind: user?.kind === UserKind.MACHINE ? 'machine' : 'person',
      },
      group_keys: groupKeys,
      memberships: memberships.map(({ groupKey, since, by }) => ({
        group_key: groupKey,
        since: since ? textOf(since) : null,
        by,
      })),
      reset: reset?.at ? { at: textOf(reset.at), by: reset.by } : null,
      renewal_required: renewalRequired,
      ...(recovering && { recovering }),
      behind,
      version: Number(version),
    },
    grants.map((grant) => ({
      id: grant.id,
      role: grant.role,
      scope: scopeOf(grant.scope),
      expires_at: grant.expiresAt ? textOf(grant.expiresAt) : null,
      since: grant.since ? textOf(grant.since) : null,
      by: grant.by,
      ...(grant.viaGroupKey !== undefined && { via_group_key: grant.viaGroupKey }),
    })),
  )

const textOf = (time: Timestamp) => timestampDate(time).toISOString()
