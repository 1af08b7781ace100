import { fileURLToPath } from 'node:url'
import Type from 'typebox'
import { authSettings } from '../shared/auth/settings.ts'
import { payloadKeys } from '../shared/codec/payload.ts'
import { ConfigError, loadConfig, settings } from '../shared/config.ts'

const POLICY = fileURLToPath(new URL('../../activities/executors/policy.yaml', import.meta.url))

export const schema = Type.Object({
  WORKER__DATABASE__URL: settings.postgres(),
  WORKER__NATS__URL: settings.nats(),
  /** Where this process reports its health; without it nothing is reported. */
  WORKER__REDIS__URL: Type.Optional(settings.redis()),
  AUTH__REDIS__PREFIX: settings.prefix(),
  WORKER__LISTEN__HOST: settings.host(),
  WORKER__INTERNAL__PORT: settings.port(7161),
  WORKER__SERVICE__KEY_FILE: authSettings.keyFile('worker'),
  SIGNALBOX__NATS__PREFIX: settings.prefix(),
  WORKER__TEMPORAL__ADDRESS: settings.temporal(),
  WORKER__TEMPORAL__NAMESPACE: Type.String({ default: 'default', description: 'The namespace in Temporal.' }),
  WORKER__TEMPORAL__QUEUE_PREFIX: settings.prefix(),
  WORKER__TEMPORAL__PAYLOAD_KEYS: payloadKeys(),
  WORKER__TEMPORAL__VERSIONING: Type.Boolean({
    default: false,
    description:
      'Operations stay on the build that began them until they continue as new. A person has to make a build current.',
  }),
  WORKER__TEMPORAL__BUILD_ID: Type.Optional(
    Type.String({
      pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$',
      description: 'The id of the build of this worker; needed if WORKER__TEMPORAL__VERSIONING is true.',
    }),
  ),
  WORKER__ROLES: Type.String({
    default: 'workflow,execution',
    pattern: '^(workflow|execution|workflow,execution)$',
    description: 'workflow, execution, or both: split them in production.',
  }),
  WORKER__OPERATION__MAX_PARALLEL: settings.integer(
    'How many nodes of one operation run at once, unless its plan or a person says otherwise.',
    50,
    1,
    500,
  ),
  WORKER__ACTIVITY__SLICE_S: settings.integer(
    'After how many seconds an activity that still waits hands its place to another.',
    120,
    5,
    600,
  ),
  WORKER__ACTIVITY__CONCURRENCY: settings.integer('How many activities one worker runs at once.', 50, 1, 1000),
  WORKER__WORKFLOW__CACHED: settings.integer('How many operations a worker keeps in memory.', 300, 0, 5000),
  WORKER__WORKFLOW__CONCURRENCY: settings.integer('How many operations a worker moves forward at once.', 30, 2, 500),
  WORKER__EXECUTORS__POLICY_FILE: Type.String({
    default: POLICY,
    description: 'The YAML file that says what executors may reach and which secrets a plan may name.',
  }),
  WORKER__EXECUTORS__SECRETS_DIR: Type.String({
    default: '.signalbox/secrets',
    description: 'The folder of the secrets that plans name as secret://file/….',
  }),
  OPERATIONS__CATALOG__URL: settings.url('http://127.0.0.1:7142'),
  WORKER__OPERATIONS__URL: settings.url('http://127.0.0.1:7152'),
  WORKER__AGENTS__URL: Type.Optional(
    Type.String({
      pattern: '^https?://.*[^/]$',
      description:
        'Where agents other than `signalbox agent` report: the public origin with /api/v1 if they are outside the network; by default the internal listener of operations.',
    }),
  ),
  OPERATIONS__CANCEL__FORCE_GRACE_S: settings.integer(
    'How many seconds after a forced cancel work that has not ended is closed as unknown.',
    30,
    1,
    3600,
  ),
  OPERATIONS__GATES__STANDING_S: settings.integer(
    'How many seconds ago the voters of an approval may have been proved when a node behind it starts.',
    5,
    1,
    60,
  ),
})

export const loadWorkerConfig = (env?: NodeJS.ProcessEnv) => {
  const config = loadConfig(schema, env)
  if (config.WORKER__TEMPORAL__VERSIONING && config.WORKER__TEMPORAL__BUILD_ID === undefined)
    throw new ConfigError('WORKER__TEMPORAL__BUILD_ID is missing: WORKER__TEMPORAL__VERSIONING is true.')
  return config
}
export type WorkerConfig = Type.Static<typeof schema>
