import { Session } from '../../apps/shared/contracts/gen/auth_pb.ts'
import { createRpcClient } from '../../apps/shared/rpc/client.ts'
import { audienceOf } from '../../apps/shared/service/scopes.ts'
import { createServiceSigner } from '../../apps/shared/service/tokens.ts'
import type { Stack } from './stack.ts'

/** The token that a security message to this person would bring. */
export const signOutTokenFor = async (
  { context, internal }: Pick<Stack, 'context' | 'internal'>,
  userId: string,
): Promise<string> => {
  const signer = createServiceSigner({ name: 'operations', key_file: context.keys.serviceKeyFile('operations') })
  const client = createRpcClient(Session, { url: internal('session'), signer, audience: audienceOf('session') })
  return (await client.offerSignOut({ userId })).token
}
