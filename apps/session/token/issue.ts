import { type Client, Code, ConnectError } from '@connectrpc/connect'
import { ENROLMENT } from '../../shared/auth/caller.ts'
import {
  type AuthenticateMachineResponse,
  type GenerateTokensResponse,
  type Identity,
  type Principal,
  ResponseMode,
  type Token,
} from '../../shared/contracts/gen/auth_pb.ts'
import { sha256Hex } from '../../shared/data/digest.ts'
import type { AccessClaims } from '../../shared/jwt/claims.ts'
import { fromRpc, throwFromRpc, withRequestId } from '../../shared/rpc/client.ts'
import type { Method, RepeatToken, SessionRecord, Successor } from '../store/store.ts'

export type TokenPair = { access_token: string; refresh_token: string }
export type Issued = TokenPair & { successor: Successor }
export type Owner = Pick<SessionRecord, 'user_id' | 'session_id' | 'username' | 'mode' | 'amr'> & { auth_time: number }

/** The stored form of a refresh token. Its entropy exceeds 112 bits, so a slow hash would add no strength. */
export const hashOf = (token: string): string => sha256Hex(token)

/** When the person of this access token, which token has just created, was authenticated. */
export const authTimeIn = (access_token: string): number =>
  (JSON.parse(Buffer.from(access_token.split('.')[1] ?? '', 'base64url').toString()) as AccessClaims).auth_time

const modeOf = (mode: SessionRecord['mode']): ResponseMode =>
  ({ json: ResponseMode.JSON, cookie: ResponseMode.COOKIE, machine: ResponseMode.MACHINE })[mode]

/** Asks token for signatures. An outage is a 503 without any effect. */
export const createIssuer = (
  client: Client<typeof Token>,
  { identity, roles, always }: { identity: Client<typeof Identity>; roles: readonly string[]; always: boolean },
) => {
  /**
   * Whether a session may only set up a second factor: one factor proved it, and its person holds a role that needs
   * two (ASVS 6.3.3), or it began with a password and those are for emergencies (`always`). Each signature asks again,
   * so a role granted meanwhile counts at the next refresh.
   */
  const permissionsOf = async ({ user_id, amr }: Owner, request_id: string): Promise<string[]> => {
    if (!isSingleFactor(amr)) return []
    if (always && !amr.includes('fed')) return [ENROLMENT]
    if (roles.length === 0) return []
    const asked = identity.getPrincipal({ userId: user_id }, withRequestId(request_id))
    const { principal } = await asked.catch(throwFromRpc('identity'))
    return holdsRole(principal, roles) ? [ENROLMENT] : []
  }
  const generate = (request: Parameters<typeof client.generateTokens>[0], request_id: string) =>
    client.generateTokens(request, withRequestId(request_id)).catch(throwFromRpc('token'))
  const request = (owner: Owner) => ({
    userId: owner.user_id,
    sessionId: owner.session_id,
    username: owner.username,
    mode: modeOf(owner.mode),
    authTime: BigInt(owner.auth_time),
    amr: owner.amr,
  })
  const call = async (owner: Owner, more: Parameters<typeof generate>[0], request_id: string) => {
    // Only an access token states them, and a refresh token alone is renewed at once.
    const permissions = more.refreshOnly ? [] : await permissionsOf(owner, request_id)
    return generate({ ...request(owner), permissions, ...more }, request_id)
  }
  return {
    /** A new pair, and what the store keeps of its refresh token. */
    issue: async (owner: Owner, request_id: string, refreshOnly = false): Promise<Issued> =>
      issuedOf(await call(owner, { refreshOnly }, request_id)),
    /** The same in exchange for a token of this key; undefined if the key was killed. */
    renew: async (owner: Owner, presented_kid: string, request_id: string): Promise<Issued | undefined> =>
      unlessRefused(call(owner, { presentedKid: presented_kid }, request_id).then(issuedOf)),
    /** Whether token itself, which learns of a killed key first, accepts this refresh token. */
    believes: async (refresh_token: string, request_id: string): Promise<boolean> => {
      try {
        await client.parseToken({ refreshToken: refresh_token }, withRequestId(request_id))
        return true
      } catch (error) {
        if (ConnectError.from(error).code === Code.InvalidArgument) return false
        throw fromRpc('token', error)
      }
    },
    /**
     * The same refresh token again, byte for byte, with a new access token. Returns `undefined` if its key no longer
     * signs (killed, or replaced and token has restarted since).
     */
    repeat: async (
      owner: Owner,
      { jti, iat, kid }: RepeatToken,
      request_id: string,
    ): Promise<TokenPair | undefined> => {
      const same = { refreshJti: jti, refreshIat: BigInt(iat), refreshKid: kid }
      return unlessRefused(
        call(owner, same, request_id).then(({ accessToken, refreshToken }) => ({
          access_token: accessToken,
          refresh_token: refreshToken,
        })),
      )
    },
    /** A machine's access token, limited to its credential's permissions and lifetime; undefined if that is over. */
    machine: async (
      { user, credentialId, method, permissions, scope, expiresAt }: AuthenticateMachineResponse,
      auth_time: number,
      request_id: string,
    ): Promise<string | undefined> => {
      const request = {
        userId: user?.id ?? '',
        sessionId: credentialId,
        username: user?.username ?? '',
        mode: ResponseMode.MACHINE,
        authTime: BigInt(auth_time),
        accessOnly: true,
        notAfter: expiresAt?.seconds ?? 0n,
        ...{ method, permissions, ...(scope && { scope }) },
      }
      return unlessRefused(generate(request, request_id).then(({ accessToken }) => accessToken))
    },
    /** Only an access token, after the password was proved again. */
    access: async (owner: Owner, request_id: string): Promise<string> =>
      (await call(owner, { accessOnly: true }, request_id)).accessToken,
  }
}
export type Issuer = ReturnType<typeof createIssuer>

/** Whether only a password, or a provider that vouches for no second factor, proved the session. */
export const isSingleFactor = (amr: readonly Method[]): boolean =>
  amr.every((method) => method === 'pwd' || method === 'fed')

/** Whether this person holds one of the roles, directly or through a group. */
export const holdsRole = (principal: Principal | undefined, roles: readonly string[]): boolean =>
  (principal?.grants ?? []).some(({ role }) => roles.includes(role))

const issuedOf = (reply: GenerateTokensResponse): Issued => ({
  access_token: reply.accessToken,
  refresh_token: reply.refreshToken,
  successor: {
    hash: hashOf(reply.refreshToken),
    succ_jti: reply.refreshJti,
    succ_iat: String(reply.refreshIat),
    succ_kid: reply.refreshKid,
  },
})

const unlessRefused = async <T>(answer: Promise<T>): Promise<T | undefined> => {
  try {
    return await answer
  } catch (error) {
    if (error instanceof ConnectError && error.code === Code.FailedPrecondition) return undefined
    throw error
  }
}
