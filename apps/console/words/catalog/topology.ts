import { count } from '../frame/plural.ts'

/** Texts for places and capabilities. */
export const topology = {
  title: 'Topology',
  levels: { regions: 'Regions', datacenters: 'Data centers', layers: 'Layers', segments: 'Segments' },
  way: 'Location',
  place: 'Place',
  inside: 'Resources',
  counts: 'Health of its resources',
  nothing_inside: 'none yet',
  count: (n: number) => count(n, '{n} resource', '{n} resources'),
  partial: 'Only the first 500 places are drawn. The table has all.',
  not_drawn: 'There are too many resources to draw. The links of the places list them.',
  squares: (place: string, n: number) => `${place}: ${count(n, '{n} resource', '{n} resources')}`,
  keys: 'Arrow keys move, Enter opens a resource.',
  empty: {
    regions: 'No regions yet.',
    datacenters: 'No data centers here.',
    layers: 'No layers here.',
    segments: 'No segments here.',
    places: 'No places here.',
  },
  empty_hint: 'Import or register some on the command line.',
}

export const capabilities = {
  title: 'Capabilities',
  caption: 'Capabilities that resources provide',
  gaps: 'Unmet needs',
  no_gaps: 'Every need is met.',
  nobody: 'no provider',
  definitions: 'Definitions',
  capability: 'Capability',
  key: 'Key',
  sharing: 'Shared',
  sharings: { shared: 'by any number', exclusive: 'by one', counted: 'by amount' },
  providers: 'Providers',
  available: 'Available',
  empty: 'No capabilities are defined.',
  all: 'All capabilities',
  providers_of: (title: string) => `Providers of ${title}`,
  none: 'No providers.',
  free: 'Free',
  unlimited: 'any',
  overcommitted: 'overcommitted',
  state: 'State',
  priority: 'Priority',
  states: { available: 'Available', degraded: 'Degraded', stale: 'Stale', withdrawn: 'Withdrawn' } as Record<
    string,
    string
  >,
  /** Why a provider is not available, unless its lifecycle or its health says it. */
  reasons: {
    resource_retired: 'retired',
    removed: 'removed',
    expired: 'expired',
    health_expired: 'health report too old',
  } as Record<string, string>,
}
