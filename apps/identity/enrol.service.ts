import { Code, ConnectError } from '@connectrpc/connect'
import { getUser } from '../../db/identity/queries.ts'
import { AppError } from '../shared/errors.ts'
import { isUuid, uuidv5 } from '../shared/ids.ts'
import { fromRpc, withRequestId } from '../shared/rpc.ts'
import type { IdentityDeps } from './deps.ts'

/** POST users/enrol: the first password, or a reset. The token says whose; it works once. */
export const enrol = async (
  deps: IdentityDeps,
  request: { enrolment_token: string; new_password: string },
  { request_id, queue_key, key }: { request_id: string; queue_key: string; key: string },
) => {
  if (!request.new_password.isWellFormed()) {
    throw new AppError('validation_error', 'schema_violation', 'The password holds half a character.')
  }
  const user_id = request.enrolment_token.split('.')[1] ?? ''
  const user = isUuid(user_id) ? await getUser(deps.db, user_id) : undefined
  if (user?.status !== 'ACTIVE') throw tokenInvalid()
  try {
    const { violations } = await deps.credential.setPassword(
      {
        userId: user_id,
        newPassword: request.new_password,
        enrolmentToken: request.enrolment_token,
        changeId: uuidv5(user_id, `enrol ${request.enrolment_token.split('.')[2]} ${key}`),
        username: user.username,
        queueKey: queue_key,
      },
      withRequestId(request_id),
    )
    if (violations[0]) throw weakPassword(violations)
  } catch (error) {
    const code = error instanceof ConnectError ? error.code : undefined
    if (code === Code.FailedPrecondition || code === Code.InvalidArgument) throw tokenInvalid(error)
    throw fromRpc('credential', error)
  }
}

const tokenInvalid = (cause?: unknown) =>
  new AppError(
    'validation_error',
    'enrolment_token_invalid',
    'This enrolment link is not valid, was used, or has ended.',
    { status: 422, hint: 'Ask an administrator for a new link.', cause },
  )

/** 422 with the specification's name of the first rule that fails; all of them as violations. */
const weakPassword = (violations: { code: string; message: string }[]) =>
  new AppError(
    'validation_error',
    violations[0]?.code ?? 'PasswordTooWeakError',
    violations[0]?.message ?? 'The password is too weak.',
    {
      status: 422,
      hint: 'Choose a longer password with different kinds of characters.',
      violations: violations.map(({ code, message }) => ({ pointer: '/new_password', code, message })),
    },
  )
