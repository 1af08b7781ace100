import { useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { reading } from '../api/read.ts'
import type { FoundResource, IntentRow, OperationRow } from '../api/types.ts'
import { shortId } from '../kit/format.ts'
import { graphQuery } from '../queries/operations.ts'
import { searchQuery } from '../queries/resources.ts'
import { NodeStatus, OperationStatusMark } from '../values/status.tsx'
import { tCatalog } from '../words/catalog.ts'
import { palette } from '../words/frame/palette.ts'
import type { Item } from './items.ts'

const MAX = 6
/** A started one is found as its operation. */
const NOT_STARTED = ['open', 'previewed', 'expired'] as const

/** Operations and intents that nobody started by title, ticket or end of id, and the resources that the search ranks first. */
export const useServer = (q: string, enabled: boolean) => {
  const asked = { enabled, staleTime: 10_000 }
  const started = useQuery({
    queryKey: ['go-to', 'operations', q],
    ...asked,
    queryFn: reading('/v1/operations', { query: { q, page_size: MAX, sort: '-created_at' } }),
  })
  const stated = useQuery({
    queryKey: ['go-to', 'intents', q],
    ...asked,
    queryFn: reading('/v1/intents', { query: { q, page_size: MAX, status: [...NOT_STARTED] } }),
  })
  const known = useQuery({ ...searchQuery({ q }, MAX), ...asked })
  return {
    operations: enabled ? started.data?.items : undefined,
    intents: enabled ? stated.data?.items : undefined,
    resources: enabled ? known.data?.items : undefined,
    busy: started.isFetching || stated.isFetching || known.isFetching,
  }
}

/** The nodes of the open operation, by name, id and state. */
export const useNodes = (enabled: boolean): Item[] => {
  const { operation_id = '' } = useParams({ strict: false })
  const graph = useQuery({ ...graphQuery(operation_id), enabled: enabled && operation_id !== '' }).data
  if (!enabled || operation_id === '') return []
  return (graph?.nodes ?? []).map(({ node_id, name, state }) => ({
    ...{ key: `node ${node_id}`, text: name, id: node_id, aside: <NodeStatus state={state} /> },
    link: { to: '/operations/$operation_id/nodes/$node_id', params: { operation_id, node_id } },
  }))
}

export const foundOperation = ({ operation_id, title, status, blocked_on }: OperationRow): Item => ({
  key: `operation ${operation_id}`,
  text: title,
  aside: (
    <>
      <OperationStatusMark status={status} blockedOn={blocked_on} /> <code>{shortId(operation_id)}</code>
    </>
  ),
  link: { to: '/operations/$operation_id/graph', params: { operation_id } },
})

/** An intent is opened by its newest plan; without one, by the list that offers to plan it. */
export const foundIntent = ({ intent_id, title, latest_plan_id }: IntentRow): Item => ({
  key: `intent ${intent_id}`,
  text: title,
  aside: (
    <>
      {latest_plan_id === null ? palette.intent : palette.plan} <code>{shortId(latest_plan_id ?? intent_id)}</code>
    </>
  ),
  link:
    latest_plan_id === null
      ? { to: '/intents', search: { whose: 'all' } }
      : { to: '/plans/$plan_id', params: { plan_id: latest_plan_id }, search: { tab: 'changes' } },
})

export const foundResource = ({ resource_id, display_name, name, matched, type_key }: FoundResource): Item => ({
  key: `resource ${resource_id}`,
  text: display_name || name,
  aside: (
    <>
      {matched.includes('name') ? null : tCatalog.resources.in_fields(matched)} <code>{type_key}</code>
    </>
  ),
  link: { to: '/resources/$resource_id', params: { resource_id }, search: { tab: 'overview' } },
})
