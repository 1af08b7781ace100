/** Import rules (dependency-cruiser). Each explains itself in its comment. */
const APPS = 'gateway|session|identity|credential|token|catalog|operations|worker|relay|console|cli|fleet|platform'
const OWNED = 'session|identity|credential|token|catalog|operations'
const SERVED = 'gateway|session|identity|credential|token|catalog|operations|worker|relay|fleet'
const { ROOMS } = require('./rooms.cjs')

/** Files directly in one of these rooms of an app. */
const filesIn = (app, rooms) => `^${app}/(${rooms.join('|')})/[^/]+$`

/** One rule per room: it must not import its own layer's other rooms or any layer above. */
const layers = Object.entries(ROOMS).flatMap(([app, floors]) =>
  floors.flatMap((floor, index) =>
    floor.flatMap((room) => {
      const above = [...floor.filter((other) => other !== room), ...floors.slice(index + 1).flat()]
      if (above.length === 0) return []
      return {
        name: `rooms-${app.replaceAll('/', '-')}-${room.replaceAll('/', '-')}`,
        comment: `${app}/${room} stands below these rooms (test/rooms.cjs): it must not import them.`,
        severity: 'error',
        from: { path: filesIn(app, [room]) },
        to: { path: filesIn(app, above) },
      }
    }),
  ),
)

module.exports = {
  forbidden: [
    {
      name: 'no-cycles',
      comment: 'A cycle has no first reader, and one of types alone is no exception.',
      severity: 'error',
      from: { pathNot: 'node_modules|contracts/gen' },
      to: { circular: true },
    },
    {
      name: 'apps-stand-apart',
      comment:
        'Apps are processes of their own: they meet on the wire and in contracts, never by import. The tools for authors of packs are loaded by the client.',
      severity: 'error',
      from: { path: `^apps/(${APPS})/`, pathNot: '^apps/(platform/|cli/operations/pack\\.ts$)' },
      to: { path: `^apps/(${APPS})/`, pathNot: '^apps/$1/' },
    },
    {
      name: 'own-tables-only',
      comment: "An app reads and writes its own schema; the worker writes operations', the relay reads operations'.",
      severity: 'error',
      from: { path: `^apps/(${OWNED})/` },
      to: { path: `^db/(${OWNED})/`, pathNot: '^db/$1/' },
    },
    {
      name: 'worker-and-relay-tables',
      comment: "The worker writes operations' schema; the relay knows operations' commands.",
      severity: 'error',
      from: { path: '^apps/(worker|relay)/' },
      to: { path: `^db/(${OWNED})/`, pathNot: '^db/operations/' },
    },
    {
      name: 'shared-is-a-leaf',
      comment: 'Everybody imports apps/shared, so it imports nobody.',
      severity: 'error',
      from: { path: '^apps/shared/' },
      to: { path: '^(apps|db|workflows|activities)/', pathNot: '^apps/shared/' },
    },
    {
      name: 'contracts-are-the-root',
      comment: 'Contracts are read by browser and workflow too: they import nothing of ours but themselves.',
      severity: 'error',
      from: { path: '^apps/shared/contracts/' },
      to: { path: '^(apps|db|workflows|activities)/', pathNot: '^apps/shared/contracts/' },
    },
    {
      name: 'console-knows-contracts-only',
      comment: 'The console is a client of the public API.',
      severity: 'error',
      from: { path: '^apps/console/' },
      to: { path: '^(apps|db|workflows|activities)/', pathNot: '^apps/(console|client|shared/contracts)/' },
    },
    {
      name: 'client-knows-its-contracts-only',
      comment: 'The client is a package of its own: what it imports is packed with it.',
      severity: 'error',
      from: { path: '^apps/client/' },
      to: { path: '^(apps|db|workflows|activities)/', pathNot: '^apps/(client|shared/contracts/client)/' },
    },
    {
      name: 'cli-knows-the-api-only',
      comment: 'The command line client is a client of the public API.',
      severity: 'error',
      from: { path: '^apps/cli/' },
      to: { path: '^(db|workflows|activities)/' },
    },
    {
      name: 'routes-know-no-engine',
      comment: 'Routes never call Temporal: a command goes through its row and the relay.',
      severity: 'error',
      from: { path: '(^|[/.])routes\\.ts$' },
      to: { path: 'node_modules/@temporalio' },
    },
    {
      name: 'workflows-are-deterministic',
      comment: 'Workflow code is replayed: no Node built-in, no I/O, no schema library.',
      severity: 'error',
      from: { path: '^workflows/' },
      to: {
        path: '^(apps|db|activities)/|node_modules/(?!@temporalio/(workflow|common))',
        pathNot: '^apps/shared/contracts/',
        dependencyTypesNot: ['type-only'],
      },
    },
    {
      name: 'workflows-no-builtins',
      comment: 'The workflow sandbox has no Node built-in.',
      severity: 'error',
      from: { path: '^workflows/' },
      to: { dependencyTypes: ['core'] },
    },
    {
      name: 'activities-reach-the-catalog-by-api',
      comment:
        'Activities use apps/shared, db/operations and the pure rules; the catalog is reached through its internal API.',
      severity: 'error',
      from: { path: '^activities/' },
      to: { path: '^(apps|db)/', pathNot: '^(apps/shared/|db/operations/|db/[^/]+\\.ts$)' },
    },
    {
      name: 'activities-belong-to-the-worker',
      comment: 'Only the worker runs activities.',
      severity: 'error',
      from: { path: `^apps/(${APPS})/`, pathNot: '^apps/worker/' },
      to: { path: '^activities/' },
    },
    {
      name: 'apps-know-messages-and-rules-only',
      comment: 'Of a workflow an app knows the messages and the pure state rules.',
      severity: 'error',
      from: { path: `^apps/(${APPS})/`, pathNot: '^apps/worker/' },
      to: {
        path: '^workflows/',
        pathNot: '^workflows/[^/]+/(messages|state|rules|refuse|snapshot|invariants|heap)(\\.ts|/)',
      },
    },
    {
      name: 'db-knows-contracts',
      comment: 'Rows know the shared words, never an app.',
      severity: 'error',
      from: { path: '^db/' },
      to: {
        path: '^(apps|workflows|activities)/',
        pathNot: '^(apps/shared/|workflows/[^/]+/(state|rules|refuse|snapshot|invariants|heap))',
      },
    },
    {
      name: 'production-needs-no-package-of-development',
      comment: 'The image has the packages of production alone (apps/platform/deploy/Dockerfile).',
      severity: 'error',
      from: {
        path: `^(workflows|activities|db)/|^apps/(${SERVED}|shared)/|^apps/platform/(base|deploy|ops|restore|run)/`,
      },
      to: { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only'] },
    },
    ...layers,
    {
      name: 'nobody-imports-tests',
      comment: 'Tests look at the product, not the other way round.',
      severity: 'error',
      from: { pathNot: '^test/' },
      to: { path: '^test/' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: 'contracts/gen|\\.signalbox' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      extensions: ['.ts', '.tsx', '.mjs', '.cjs', '.js'],
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default', 'require'],
    },
  },
}
