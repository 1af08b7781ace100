import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link, useSearch } from '@tanstack/react-router'
import { useMemo } from 'react'
import { useTopic } from '../api/hooks.ts'
import type { Definition, Gap, ProviderRow } from '../api/types.ts'
import { needs } from '../pictures/branches.ts'
import { PictureView } from '../pictures/view.tsx'
import { definitionsQuery, gapsQuery, needsQuery, providersQuery } from '../queries/topology.ts'
import { NEED, OFFER, WHY_NOT, whyNot } from '../resources/capabilities.tsx'
import { PLACE } from '../resources/columns.tsx'
import { Heading, Page } from '../ui/page.tsx'
import { type Column, DataTable, Listing, ListTable } from '../ui/table.tsx'
import { ResourceLink } from '../values/links.tsx'
import { tCatalog } from '../words/catalog.ts'

/** Capabilities of resources: all definitions, or the providers of one. */
export const CapabilitiesPage = () => {
  const { key } = useSearch({ from: '/shell/capabilities' })
  useTopic('resources')
  const list = useQuery(definitionsQuery())
  const rows = list.data?.items ?? []
  if (key !== undefined) return <Providers capability_key={key} title={titleOf(rows, key)} />
  return (
    <Page>
      <Heading title={tCatalog.capabilities.title}>{tCatalog.capabilities.title}</Heading>
      <Gaps />
      <h2 className="card-title">{tCatalog.capabilities.definitions}</h2>
      <ListTable
        list={list}
        empty={tCatalog.capabilities.empty}
        caption={tCatalog.capabilities.caption}
        columns={DEFINITIONS}
        rows={rows}
        keyOf="capability_key"
      />
    </Page>
  )
}

/** Unmet needs, and why the existing providers do not match. */
const Gaps = () => {
  const list = useInfiniteQuery(gapsQuery())
  const rows = (list.data?.pages ?? []).flatMap(({ nodes }) =>
    nodes.flatMap((node) => (node.kind === 'requirement' && node.state === 'unsatisfied' ? [node] : [])),
  )
  return (
    <>
      <h2 className="card-title">{tCatalog.capabilities.gaps}</h2>
      <Listing list={list} empty={rows.length === 0 && !list.hasNextPage ? tCatalog.capabilities.no_gaps : undefined}>
        <DataTable caption={tCatalog.capabilities.gaps} columns={GAPS} rows={rows} keyOf="id" />
      </Listing>
    </>
  )
}

const GAPS: Column<Gap>[] = [
  {
    name: tCatalog.resources.name,
    kind: 'lead',
    cell: ({ resource_id }) => <ResourceLink id={resource_id} tab="capabilities" data-row="" />,
  },
  NEED,
  { ...WHY_NOT, cell: (gap) => whyNot(gap) || tCatalog.capabilities.nobody },
]

const titleOf = (rows: Definition[], key: string): string =>
  rows.find(({ capability_key }) => capability_key === key)?.title ?? key

const Providers = ({ capability_key, title }: { capability_key: string; title: string }) => {
  const list = useInfiniteQuery(providersQuery(capability_key))
  return (
    <Page>
      <p>
        <Link to="/capabilities">{tCatalog.capabilities.all}</Link>
      </p>
      <Heading title={title}>{tCatalog.capabilities.providers_of(title)}</Heading>
      <Needs capability_key={capability_key} title={title} />
      <ListTable
        list={list}
        empty={tCatalog.capabilities.none}
        caption={tCatalog.capabilities.providers_of(title)}
        columns={[PROVIDER, ...OFFER, PLACE]}
        keyOf="provider_id"
      />
    </Page>
  )
}

/** The capability between the resources that need it and those that provide it, if there are any. */
const Needs = ({ capability_key, title }: { capability_key: string; title: string }) => {
  const graph = useQuery(needsQuery(capability_key)).data
  const branches = useMemo(() => {
    if (graph === undefined) return undefined
    const found = needs(graph, {
      needs: (state) => tCatalog.resource.need_state[state],
      offers: (status) => tCatalog.capabilities.states[status] ?? status,
      why_not: (need) => whyNot(need) || tCatalog.capabilities.nobody,
    })
    found.faces.set(capability_key, { resource_id: null, name: title, health: null })
    return found
  }, [graph, capability_key, title])
  if (graph === undefined || branches === undefined || graph.nodes.length === 0) return null
  return (
    <>
      {graph.next_page_token ? <p className="text-wait">{tCatalog.picture.partial}</p> : null}
      <PictureView
        label={tCatalog.picture.needs(title)}
        about={{ resource_id: capability_key, name: title, health_status: '' }}
        branches={branches}
        tab="capabilities"
      />
    </>
  )
}

const PROVIDER: Column<ProviderRow> = {
  name: tCatalog.resource.provider,
  kind: 'lead',
  cell: ({ resource_id }) => <ResourceLink id={resource_id} tab="capabilities" data-row="" />,
}

const DEFINITIONS: Column<Definition>[] = [
  {
    name: tCatalog.capabilities.capability,
    kind: 'lead',
    cell: ({ capability_key, title }) => (
      <Link to="/capabilities" search={{ key: capability_key }} data-row="">
        {title}
      </Link>
    ),
  },
  { name: tCatalog.capabilities.key, className: 'mono', cell: (row) => `${row.capability_key} ${row.version}` },
  { name: tCatalog.capabilities.sharing, cell: ({ sharing }) => tCatalog.capabilities.sharings[sharing] },
  { name: tCatalog.capabilities.providers, kind: 'number', cell: ({ providers }) => providers.total },
  {
    name: tCatalog.capabilities.available,
    kind: 'number',
    cell: ({ providers }) => providers.by_status.available ?? 0,
  },
]
