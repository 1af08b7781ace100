import { type Client, Code, ConnectError } from '@connectrpc/connect'
import { ResponseMode, type Token } from '../../shared/contracts/gen/auth_pb.ts'
import { sha256Hex } from '../../shared/data/digest.ts'
import { fromRpc, withRequestId } from '../../shared/rpc/client.ts'
import type { RepeatToken, SessionRecord, Successor } from '../store/store.ts'

export type TokenPair = { access_token: string; refresh_token: string }
export type Owner = Pick<SessionRecord, 'user_id' | 'session_id' | 'username' | 'mode'> & { auth_time: number }

/** The stored form of a refresh token. Its entropy is above 112 bits, so a slow hash would add nothing. */
export const hashOf = (token: string): string => sha256Hex(token)

export const modeOf = (mode: 'json' | 'cookie'): ResponseMode =>
  mode === 'cookie' ? ResponseMode.COOKIE : ResponseMode.JSON

/** Asks token for signatures. An outage is 503 and changes nothing. */
export const createIssuer = (client: Client<typeof Token>) => {
  const request = (owner: Owner) => ({
    userId: owner.user_id,
    sessionId: owner.session_id,
    username: owner.username,
    mode: modeOf(owner.mode),
    authTime: BigInt(owner.auth_time),
  })
  const call = async (owner: Owner, more: object, request_id: string) => {
    try {
      return await client.generateTokens({ ...request(owner), ...more }, withRequestId(request_id))
    } catch (error) {
      throw fromRpc('token', error)
    }
  }
  return {
    /** A new pair, and what the store keeps of its refresh token. */
    issue: async (owner: Owner, request_id: string): Promise<TokenPair & { successor: Successor }> => {
      const reply = await call(owner, {}, request_id)
      return {
        access_token: reply.accessToken,
        refresh_token: reply.refreshToken,
        successor: {
          hash: hashOf(reply.refreshToken),
          succ_jti: reply.refreshJti,
          succ_iat: String(reply.refreshIat),
          succ_kid: reply.refreshKid,
        },
      }
    },
    /**
     * The same refresh token once more, byte for byte, with a new access token; nothing when its key signs no more
     * (killed, or replaced and token has restarted since).
     */
    repeat: async (
      owner: Owner,
      { jti, iat, kid }: RepeatToken,
      request_id: string,
    ): Promise<TokenPair | undefined> => {
      try {
        const reply = await call(owner, { refreshJti: jti, refreshIat: BigInt(iat), refreshKid: kid }, request_id)
        return { access_token: reply.accessToken, refresh_token: reply.refreshToken }
      } catch (error) {
        if (error instanceof ConnectError && error.code === Code.FailedPrecondition) return undefined
        throw error
      }
    },
    /** An access token alone, after the password was proved again. */
    access: async (owner: Owner, request_id: string): Promise<string> =>
      (await call(owner, { accessOnly: true }, request_id)).accessToken,
  }
}
export type Issuer = ReturnType<typeof createIssuer>
