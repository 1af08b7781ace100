import type * as en from '../../words/catalog/topology.ts'
import { count } from '../frame/plural.ts'

/** The German texts for places. */
export const topology: typeof en.topology = {
  title: 'Topologie',
  levels: { regions: 'Regionen', datacenters: 'Rechenzentren', layers: 'Ebenen', segments: 'Segmente' },
  way: 'Standort',
  place: 'Ort',
  inside: 'Ressourcen',
  counts: 'Zustand der Ressourcen',
  nothing_inside: 'noch keine',
  count: (n: number) => count(n, '{n} Ressource', '{n} Ressourcen'),
  partial: 'Gezeichnet sind die ersten 500 Orte. Die Tabelle hat alle.',
  not_drawn: 'Es sind zu viele Ressourcen, um sie zu zeichnen. Die Links der Orte zeigen sie als Liste.',
  squares: (place: string, n: number) => `${place}: ${count(n, '{n} Ressource', '{n} Ressourcen')}`,
  keys: 'Pfeiltasten bewegen die Auswahl, die Eingabetaste öffnet eine Ressource.',
  empty: {
    regions: 'Noch keine Regionen.',
    datacenters: 'Hier gibt es keine Rechenzentren.',
    layers: 'Hier gibt es keine Ebenen.',
    segments: 'Hier gibt es keine Segmente.',
    places: 'Hier gibt es keine Orte.',
  },
  empty_hint: 'Über die Befehlszeile importieren oder registrieren.',
}

/** The German texts for capabilities. */
export const capabilities: typeof en.capabilities = {
  title: 'Fähigkeiten',
  caption: 'Fähigkeiten, die Ressourcen bereitstellen',
  gaps: 'Ungedeckter Bedarf',
  no_gaps: 'Jeder Bedarf ist gedeckt.',
  nobody: 'kein Anbieter',
  definitions: 'Definitionen',
  capability: 'Fähigkeit',
  key: 'Schlüssel',
  sharing: 'Nutzung',
  sharings: { shared: 'durch beliebig viele', exclusive: 'durch eine', counted: 'nach Menge' },
  providers: 'Anbieter',
  available: 'Verfügbar',
  empty: 'Es sind keine Fähigkeiten definiert.',
  all: 'Alle Fähigkeiten',
  providers_of: (title: string) => `Anbieter von ${title}`,
  none: 'Keine Anbieter.',
  free: 'Frei',
  unlimited: 'unbegrenzt',
  overcommitted: 'überbucht',
  state: 'Zustand',
  priority: 'Priorität',
  states: { available: 'Verfügbar', degraded: 'Eingeschränkt', stale: 'Veraltet', withdrawn: 'Zurückgezogen' },
  reasons: {
    resource_retired: 'ausgemustert',
    removed: 'entfernt',
    expired: 'abgelaufen',
    health_expired: 'Zustandsmeldung zu alt',
  },
}
