import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { Need, ProviderRow } from '../api/types.ts'
import { capabilitiesQuery } from '../queries/resources.ts'
import { type Column, ListTable } from '../ui/table.tsx'
import { ResourceLink } from '../values/links.tsx'
import { tCatalog } from '../words/catalog.ts'
import { inSentence } from '../words/frame/language.ts'
import { t } from '../words/index.ts'

/** The capabilities and needs of a resource: who meets a need, or why no one does. */
export const ResourceCapabilities = ({ resource_id }: { resource_id: string }) => {
  const list = useQuery(capabilitiesQuery(resource_id))
  const { provided = [], required = [] } = list.data ?? {}
  return (
    <>
      <h2 className="card-title">{tCatalog.resource.needs}</h2>
      <ListTable
        list={list}
        empty={tCatalog.resource.needs_none}
        caption={tCatalog.resource.needs}
        columns={NEEDS}
        rows={required}
        keyOf={({ requirement }) => requirement.requirement_key}
      />
      <h2 className="card-title">{tCatalog.resource.provides}</h2>
      <ListTable
        list={list}
        empty={tCatalog.resource.provides_none}
        caption={tCatalog.resource.provides}
        columns={[CAPABILITY, ...OFFER]}
        rows={provided}
        keyOf="provider_id"
      />
    </>
  )
}

const Peer = ({ id }: { id: string }) => <ResourceLink id={id} tab="capabilities" className="mr-2" />

const CAPABILITY: Column<ProviderRow> = {
  name: tCatalog.capabilities.capability,
  kind: 'lead',
  className: 'mono',
  cell: ({ capability_key, version }) => (
    <Link to="/capabilities" search={{ key: capability_key }}>
      {capability_key} {version}
    </Link>
  ),
}

const reasonWords = (reason: string): string => {
  const [, about = '', state = ''] = /^(health|lifecycle)_(.*)$/.exec(reason) ?? []
  const words = about === 'health' ? t.health[state] : tCatalog.resources.lifecycles[state]
  return inSentence(tCatalog.capabilities.reasons[reason] ?? words ?? reason)
}

/** A provided capability, as shown in the list of providers and on the resource. */
export const OFFER: Column<ProviderRow>[] = [
  {
    name: tCatalog.capabilities.state,
    cell: ({ status, status_reason }) => (
      <>
        {tCatalog.capabilities.states[status]}
        {status === 'available' ? null : <span className="text-muted"> ({reasonWords(status_reason)})</span>}
      </>
    ),
  },
  {
    name: tCatalog.capabilities.free,
    cell: ({ free, capacity, overcommitted }) => (
      <>
        {free === null ? tCatalog.capabilities.unlimited : t.of(free, capacity?.total ?? 1)}
        {overcommitted ? <span className="badge tone-wait ml-2">{tCatalog.capabilities.overcommitted}</span> : null}
      </>
    ),
  },
  { name: tCatalog.capabilities.priority, kind: 'number', cell: ({ priority }) => priority },
]

/** A need, and why no other provider matches it, as shown on the resource and in the list of gaps. */
export const NEED: Column<Pick<Need, 'requirement'>> = {
  name: tCatalog.resource.requirement,
  cell: ({ requirement }) => (
    <span>
      {requirement.requirement_key}{' '}
      <Link to="/capabilities" search={{ key: requirement.capability_key }} className="mono">
        {requirement.capability_key}
      </Link>
    </span>
  ),
}

/** Why no other provider matches; empty if there is none. */
export const whyNot = ({ rejected_count }: Pick<Need, 'rejected_count'>): string =>
  Object.entries(rejected_count)
    .map(([rule, n]) =>
      tCatalog.resource.rejected(tCatalog.resource.rules[rule as keyof typeof tCatalog.resource.rules], n),
    )
    .join(', ')
export const WHY_NOT: Column<Pick<Need, 'rejected_count'>> = {
  name: tCatalog.resource.why_not,
  cell: (need) => whyNot(need) || null,
}

const NEEDS: Column<Need>[] = [
  { ...NEED, kind: 'lead' },
  { name: tCatalog.capabilities.state, cell: ({ state }) => tCatalog.resource.need_state[state] },
  {
    name: tCatalog.resource.provider,
    cell: ({ bound_to, providers }) =>
      (bound_to.length > 0 ? bound_to : providers).map(({ resource_id }) => (
        <Peer key={resource_id} id={resource_id} />
      )),
  },
  WHY_NOT,
]
