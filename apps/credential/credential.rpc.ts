import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import type { HandlerContext } from '@connectrpc/connect'
import { Credential } from '../shared/contracts/gen/auth_pb.ts'
import { rpcContext, rpcService } from '../shared/rpc/client.ts'
import type { CredentialDeps } from './deps.ts'
import { createEnrolmentToken } from './enrolment.service.ts'
import { changePassword, endPassword, setPassword, verifyPassword } from './passwords/change.ts'
import { beginTotp, readTotp, removeTotp, setTotp, verifyTotp } from './totp/factor.ts'

const contextOf = (context: HandlerContext) => ({ request_id: rpcContext(context).request_id, signal: context.signal })

/** All methods of the credential app, each with the scope that its caller needs. */
export const credentialRpc = (deps: CredentialDeps) =>
  rpcService(
    Credential,
    {
      verifyPassword: 'password:verify',
      setPassword: 'password:set',
      changePassword: 'password:change',
      endPassword: 'password:set',
      createEnrolmentToken: 'enrolment:create',
      getTotp: 'totp:write',
      beginTotp: 'totp:write',
      setTotp: 'totp:write',
      verifyTotp: 'totp:verify',
      removeTotp: 'totp:remove',
    },
    {
      verifyPassword: async (request, context) => {
        const { is_valid, password_version, totp } = await verifyPassword(deps, request, contextOf(context))
        return { isValid: is_valid, passwordVersion: password_version, totp }
      },
      setPassword: async (request, context) => {
        const { violations, enrolment_change_id } = await setPassword(deps, request, contextOf(context))
        return { violations, enrolmentChangeId: enrolment_change_id }
      },
      changePassword: async (request, context) => {
        const { current_is_valid, violations, password_version } = await changePassword(
          deps,
          request,
          contextOf(context),
        )
        return { currentIsValid: current_is_valid, violations, passwordVersion: password_version }
      },
      endPassword: ({ userId }) => endPassword(deps, userId),
      createEnrolmentToken: async (request) => {
        const { token, expires_at } = await createEnrolmentToken(deps, request)
        return { enrolmentToken: token, expiresAt: timestampFromDate(expires_at) }
      },
      getTotp: ({ userId }) => readTotp(deps, userId),
      beginTotp: (request) => beginTotp(deps, request),
      setTotp: (request) => setTotp(deps, request),
      verifyTotp: (request) => verifyTotp(deps, request),
      removeTotp: ({ userId }) => removeTotp(deps, userId),
    },
  )
