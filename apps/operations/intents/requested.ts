import type { Tx } from '../../../db/client.ts'
import { loadResources } from '../../../db/operations/plans/planning.ts'
import { saveIntent } from '../../../db/operations/plans/rows.ts'
import type { IntentRequestedPayload } from '../../shared/contracts/catalog/events.ts'
import { pick } from '../../shared/data/pick.ts'

export const WEEK_S = 604_800

/** Creates the intent that the catalog requested: once, whoever brings the event and however often. */
export const createRequestedIntent = async (
  tx: Tx,
  asked: IntentRequestedPayload,
  request_id: string | null,
): Promise<void> => {
  const [resource] = await loadResources(tx, [asked.resource_id])
  if (!resource) throw new Error(`the resource ${asked.resource_id} of an intent does not exist`)
  const { environment } = resource.labels
  await saveIntent(
    tx,
    {
      ...pick(asked, 'intent_id', 'kind', 'reason', 'requester'),
      title: asked.title.slice(0, 200).toWellFormed(),
      request: {
        ...pick(asked, 'kind', 'title', 'reason'),
        targets: [{ resource_id: asked.resource_id }],
        change: { op: asked.op, ...(asked.op === 'update' && { desired_state_patch: asked.desired_state_patch }) },
      },
      targets_resolved: [{ ...pick(resource, 'resource_id', 'type_key', 'name', 'version') }],
      labels: environment === undefined ? {} : { environment },
      constraints: {},
      ticket: null,
      retry_of: null,
      expires_in_s: WEEK_S,
    },
    { actor: asked.requester, reason: asked.reason, request_id, data: { source: 'catalog' } },
  )
}
