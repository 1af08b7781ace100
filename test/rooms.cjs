/**
 * The rooms of each app, from the lowest layer to the highest: a room imports from lower layers alone, and rooms of one
 * layer do not import each other. A noun of the API has a room in each app that knows it. What is in the app's own
 * folder wires the rooms together.
 */
const ROOMS = {
  'apps/operations': [
    ['policies', 'catalog'],
    ['command', 'graph', 'agents'],
    ['packs'],
    ['planner'],
    ['targets'],
    ['intents', 'rehearsal'],
    ['plans'],
    ['operations'],
    ['nodes', 'patches', 'calendar', 'history', 'schedules'],
    ['interventions', 'upkeep', 'waiting'],
    ['gates', 'notifications'],
    ['stream'],
  ],
  'apps/catalog': [
    ['document'],
    ['packs'],
    ['rules', 'read'],
    ['command', 'graph'],
    ['drawing'],
    ['capabilities'],
    ['relationships'],
    ['health'],
    ['changes'],
    ['resources'],
    ['bulk'],
    ['results', 'topology', 'impact', 'difference', 'search', 'imports', 'operations'],
    ['projections'],
  ],
  'apps/session': [['browser', 'store'], ['machines', 'sessions'], ['token'], ['sso']],
  'apps/gateway': [['files', 'proxy'], ['routes'], ['edge'], ['guard']],
  'apps/identity': [['control'], ['users'], ['machines', 'groups', 'passkeys', 'views'], ['grants'], ['federation'], ['scim']],
  'apps/credential': [['hashing', 'passwords']],
  'apps/relay': [['audit', 'commands', 'events']],
  'apps/shared': [
    ['contracts', 'codec', 'jwt', 'process', 'run'],
    ['contracts/client', 'contracts/catalog', 'contracts/identity', 'contracts/session', 'service'],
    ['contracts/operations', 'contracts/topology', 'contracts/imports'],
    ['contracts/engine', 'contracts/notifications', 'data'],
    ['expressions'],
    ['http', 'web'],
    ['events', 'evidence', 'rpc'],
    ['auth'],
  ],
  'apps/platform': [
    ['base'],
    ['servers'],
    ['run', 'tests'],
    ['check/openapi', 'check/text', 'demo', 'deploy'],
    ['check', 'ops'],
    ['restore'],
  ],
  'apps/console': [
    ['words/frame', 'kit', 'session'],
    ['words/catalog', 'words/operations'],
    ['words', 'api'],
    ['queries', 'forms'],
    ['values'],
    ['ui'],
    ['command', 'frame', 'graph', 'history', 'proof'],
    ['pictures', 'views'],
    ['resources'],
    ['account', 'votes', 'interventions', 'topology', 'schedules', 'matrix'],
    ['inbox', 'gates', 'intents', 'nodes', 'notifications', 'patches', 'plans', 'admin'],
    ['operations'],
  ],
  'apps/cli': [
    ['terminal'],
    ['session'],
    ['import', 'operations'],
    ['import/kubernetes', 'import/netbox', 'import/terraform', 'import/table', 'import/run'],
    ['agent/tools'],
    ['agent/tofu', 'agent/jobs'],
    ['agent'],
    ['commands'],
  ],
  'db/operations': [
    ['tables'],
    ['facts'],
    ['commands', 'history'],
    ['gates', 'leases', 'projection'],
    ['nodes', 'patches', 'plans'],
    ['agents', 'operations'],
    ['notifications'],
  ],
  'db/catalog': [['held'], ['resources'], ['imports', 'search'], ['relationships'], ['many']],
  'workflows/operation': [['rules'], ['state']],
}

/** How many source files a room may have. */
const MOST_FILES = 12

module.exports = { ROOMS, MOST_FILES }
