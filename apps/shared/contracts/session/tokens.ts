import Type from 'typebox'
import { text } from '../shapes.ts'

/** The answer to clients that sign in or renew (auth.md 3.1). */
const Bearer = { token_type: Type.Literal('Bearer'), expires_in: Type.Integer() }
/** The reply of both modes: `refresh_token` in JSON mode, `csrf_token` in cookie mode. */
export const TokenReply = Type.Object({
  access_token: text('eyJhbGciOiJSUzI1NiIsImtpZCI6Ik56Yk…'),
  refresh_token: Type.Optional(Type.String()),
  csrf_token: Type.Optional(Type.String()),
  ...Bearer,
  device_token: Type.Optional(Type.String()),
  revoked_sessions: Type.Optional(Type.Integer()),
})
export const CsrfReply = Type.Object({ csrf_token: text('v1.q1w2e3…') })
export const AccessReply = Type.Object({ access_token: text('eyJhbGciOiJSUzI1NiIsImtpZCI6Ik56Yk…'), ...Bearer })
/** A machine's short-lived token; there is no refresh token. */
export const MachineToken = Type.Object({
  access_token: text('eyJhbGciOiJSUzI1NiIsImtpZCI6Ik56Yk…'),
  token_type: Type.Literal('Bearer'),
  expires_in: Type.Integer({ minimum: 1, maximum: 900 }),
  scope: text('operation:read intent:create'),
  issued_token_type: Type.Optional(Type.String()),
})
