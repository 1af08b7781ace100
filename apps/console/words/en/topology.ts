/** Words of places and capabilities. */
export const topology = {
  title: 'Topology',
  levels: { regions: 'Regions', datacenters: 'Data centers', layers: 'Layers', segments: 'Segments' },
  way: 'Where you are',
  place: 'Place',
  inside: 'Resources',
  counts: 'Health of what is in it',
  nothing_inside: 'nothing yet',
  see: 'See the resources',
  empty: {
    regions: 'No regions yet.',
    datacenters: 'No data centers here.',
    layers: 'No layers here.',
    segments: 'No segments here.',
  },
  empty_hint: 'Import or register some from the command line.',
}

export const capabilities = {
  title: 'Capabilities',
  caption: 'What resources provide to each other',
  gaps: 'Needs that nothing meets',
  no_gaps: 'Every need is met.',
  nobody: 'nobody provides it',
  definitions: 'What can be provided',
  capability: 'Capability',
  key: 'Key',
  sharing: 'Shared',
  sharings: { shared: 'by any number', exclusive: 'by one', counted: 'by amount' },
  providers: 'Providers',
  available: 'Available',
  empty: 'No capabilities are defined.',
  all: 'All capabilities',
  providers_of: (title: string) => `Providers of ${title}`,
  none: 'Nobody provides it.',
  free: 'Free',
  unlimited: 'any',
  overcommitted: 'overcommitted',
  state: 'State',
  priority: 'Priority',
  states: { available: 'Available', degraded: 'Degraded', stale: 'Stale', withdrawn: 'Withdrawn' } as Record<
    string,
    string
  >,
}
