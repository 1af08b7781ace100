import { randomUUID } from 'node:crypto'
import { createServiceSigner } from '../../apps/shared/service/tokens.ts'
import type { Stack } from './stack.ts'

/** Tells the catalog the health of a resource, as a control plane does. */
export const observe = async (
  { context, internal }: Pick<Stack, 'context' | 'internal'>,
  resource_id: string,
  status: string,
): Promise<void> => {
  const key_file = context.keys.serviceKeyFile('demo-control-plane')
  const token = createServiceSigner({ name: 'demo-control-plane', key_file })('catalog-internal')
  const reply = await fetch(`${internal('catalog')}/internal/v1/resources/${resource_id}/health-observations`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      ...{ command_id: randomUUID(), idempotency_key: randomUUID(), resource_id, source: 'test', check_key: 'http' },
      ...{ status, observed_at: new Date().toISOString(), ttl_s: 3600 },
    }),
  })
  if (!reply.ok) throw new Error(`the catalog answered ${reply.status} to ${resource_id}: ${await reply.text()}`)
}
