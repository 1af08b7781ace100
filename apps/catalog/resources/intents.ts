import type { ResourceRow } from '../../../db/catalog/rows.ts'
import type { Tx } from '../../../db/client.ts'
import type { Caller } from '../../shared/auth/caller.ts'
import type { IntentRequestedPayload } from '../../shared/contracts/catalog/events.ts'
import type { OperationRef } from '../../shared/contracts/catalog/resources.ts'
import { uuidv5 } from '../../shared/ids.ts'
import { type Cause, eventOf, tell } from '../command/outbox.ts'
import type { JsonObject } from '../document/pointers.ts'
import type { Types } from '../packs/registry.ts'

const NAMESPACE = '9d0c7a2e-1f3b-5c64-8a5d-0b6e2f9d4c11'

/** The intent that a change of an operation type becomes. The command fixes its id, so no repeat creates another. */
const intentIdOf = (resource_id: string, command_id: string): string =>
  uuidv5(uuidv5(NAMESPACE, resource_id), command_id)

const operationRef = (intent_id: string): OperationRef => ({
  kind: 'intent',
  intent_id,
  href: `/v1/intents/${intent_id}`,
  plan_preview_href: `/v1/intents/${intent_id}/plan-preview`,
  status_href: `/v1/intents/${intent_id}`,
  operation_id: null,
})

/** Announces the intent to the operations app, which creates it on this event (catalog.md 7.4). */
export const requestIntent = async (
  tx: Tx,
  types: Types,
  row: ResourceRow,
  caller: Caller,
  cause: Cause,
  { op, desired_state_patch }: { op: 'create' | 'update'; desired_state_patch: JsonObject },
): Promise<OperationRef> => {
  const intent_id = intentIdOf(row.resource_id, cause.command_id)
  const type_key = types.keyOf(row.type_id)
  const payload: IntentRequestedPayload = {
    intent_id,
    kind: 'change',
    op,
    resource_id: row.resource_id,
    base_version: row.version,
    base_generation: row.generation,
    desired_state_patch,
    requester: { kind: 'user', id: caller.user_id, name: caller.username, roles: caller.roles },
    title: `${op === 'create' ? 'Create' : 'Change'} ${type_key} ${row.name}`.slice(0, 200).toWellFormed(),
    reason: cause.reason ?? 'Requested through the catalog.',
  }
  const event = eventOf(cause, { ...row, type_key }, row.version, {
    type: 'intent.requested',
    agg_type: 'intent',
    agg_id: intent_id,
    agg_version: 1,
    payload,
  })
  await tell(tx, event)
  return operationRef(intent_id)
}
