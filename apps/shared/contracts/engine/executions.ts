import Type, { type Static } from 'typebox'
import { EXECUTED, Json, LogLevel, NodeId, NullableText, OperationId, PLAIN, SHA256 } from '../operations/common.ts'
import { Closed, OptionalClosed, text } from '../shapes.ts'

/** External agents' messages about the work that was handed to them (operations.md 9.1). */

const Line = Closed({
  seq: Type.Integer({ minimum: 1, maximum: 2_147_483_647 }),
  time: Type.String({ format: 'date-time' }),
  stream: Type.Enum(['stdout', 'stderr', 'log']),
  level: LogLevel,
  text: Type.String({ maxLength: 16_384 }),
  cut: Type.Optional(Type.Boolean({ description: 'The line was longer; the rest of it is not sent.' })),
})

const AGENT_NAME = '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$'

const MAX_ARTIFACT = 268_435_456
const Artifact = Closed({
  name: text('certificate.pem', { minLength: 1, maxLength: 200, pattern: PLAIN }),
  kind: text('certificate', { pattern: '^[a-z][a-z0-9_-]{0,39}$' }),
  media_type: text('application/x-pem-file', { pattern: '^[a-z]+/[a-z0-9.+-]{1,100}$' }),
  size: Type.Integer({ minimum: 0, maximum: MAX_ARTIFACT }),
  sha256: text('7777777777777777777777777777777777777777777777777777777777777777', { pattern: SHA256 }),
  uri: Type.Optional(
    text('https://artifacts.example/one', { maxLength: 2000, pattern: '^https?://', description: 'Kept elsewhere.' }),
  ),
})

export const ExecutionResult = Closed(
  {
    result_id: text('0195f0c2-0000-7000-8000-00000000000b', {
      format: 'uuid',
      description: 'The same in every retry.',
    }),
    operation_id: OperationId,
    node_id: NodeId,
    attempt: Type.Integer({ minimum: 1 }),
    generation: Type.Integer({ minimum: 1 }),
    fence: Type.Integer({ minimum: 0 }),
    sequence: Type.Integer({
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'Grows by one with each message of an attempt.',
    }),
    phase: Type.Enum(['started', 'heartbeat', 'progress', 'succeeded', 'failed', 'unknown']),
    agent: Type.Optional(
      text('eu1-runner-01', {
        pattern: AGENT_NAME,
        description: 'The name of an agent that does not ask for its work, so that GET /v1/agents lists the work.',
      }),
    ),
    progress: Type.Optional(Json),
    outputs: Type.Optional(Json),
    error: OptionalClosed({
      class: text('remote_error', { pattern: '^[a-z_]{1,40}$' }),
      message: text('The device answers no.', { minLength: 1, maxLength: 1000 }),
      retryable: Type.Optional(Type.Boolean()),
    }),
    resume: Type.Optional({
      ...Json,
      description: 'With `failed`: the next attempt of the node gets it with its work.',
    }),
    executed: OptionalClosed(EXECUTED),
    artifacts: Type.Optional(
      Type.Array(Artifact, {
        maxItems: 100,
        description: 'What the attempt has made. Upload the bytes below artifacts_url of the work (uploadArtifact).',
      }),
    ),
    lines: Type.Optional(Type.Array(Line, { maxItems: 1000, description: 'Log lines, numbered densely per attempt.' })),
  },
  {
    examples: [
      {
        result_id: '0195f0c2-0000-7000-8000-00000000000b',
        operation_id: '0195f0c2-0000-7000-8000-000000000001',
        node_id: 'drain.eu1-web-01',
        attempt: 1,
        generation: 1,
        fence: 7,
        sequence: 1,
        phase: 'started',
      },
    ],
  },
)
export type ExecutionResult = Static<typeof ExecutionResult>

export const ExecutionReply = Type.Object({
  accepted: Type.Boolean(),
  duplicate: Type.Boolean(),
  node_state: text('running'),
  cancel_requested: Type.Boolean({ description: 'Stop, and report failed with class cancelled, or the real outcome.' }),
  next_before: NullableText,
  left_s: Type.Optional(
    Type.Integer({
      description:
        'Seconds that the work still has. Its time begins with the accepted "started" and may be extended; clocks may differ.',
    }),
  ),
})
export type ExecutionReply = Static<typeof ExecutionReply>

export const ArtifactParams = Type.Object({
  sha256: text('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855', { pattern: SHA256 }),
})
export const ArtifactTaken = Type.Object({
  sha256: text('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'),
  size: Type.Integer(),
  duplicate: Type.Boolean({ description: 'The bytes were already stored.' }),
})

/** An agent asks for work (operations.md 7.4). */
export const PoolParams = Type.Object({ pool: text('infra', { pattern: '^[a-z][a-z0-9-]{0,62}$' }) })
export const WorkRequest = Closed(
  {
    labels: Type.Optional(
      Type.Record(Type.String(), Type.String({ maxLength: 200 }), {
        maxProperties: 24,
        examples: [{ region: 'eu1' }],
        description: 'Labels of this agent. It gets no work that demands other labels.',
      }),
    ),
    wait_s: Type.Optional(Type.Integer({ minimum: 1, maximum: 8, description: 'How long to wait for work.' })),
    agent: OptionalClosed({
      name: text('eu1-runner-01', {
        pattern: AGENT_NAME,
        description: 'Tells apart the agents of one machine in GET /v1/agents.',
      }),
      instance: Type.Optional(
        text('0195f0c2-0000-7000-8000-00000000000c', {
          pattern: '^[A-Za-z0-9_-]{8,64}$',
          description: 'Random for each process: so two that use one name are found.',
        }),
      ),
      version: Type.Optional(text('0.1.0', { pattern: '^[\\w.+-]{1,40}$' })),
      concurrency: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
      pools: Type.Optional(
        Type.Array(PoolParams.properties.pool, { maxItems: 20, description: 'All pools whose work it takes.' }),
      ),
      sandbox: Type.Optional(
        Type.Enum(['bwrap'], { description: 'Jobs run in namespaces of their own. Pools may demand it.' }),
      ),
      leaves: Type.Optional(
        Type.Enum(['draining', 'gone'], {
          description:
            'It takes no more work, or has ended and leaves the list: this request only says so, and gets 204.',
        }),
      ),
    }),
  },
  { examples: [{ labels: { region: 'eu1' }, wait_s: 5, agent: { name: 'eu1-runner-01', concurrency: 2 } }] },
)
export type WorkRequest = Static<typeof WorkRequest>
/** One handover; `apps/cli/agent` and third-party agents read the same. */
export const Work = Type.Object(
  {
    v: Type.Integer(),
    operation_id: OperationId,
    node_id: NodeId,
    attempt: Type.Integer(),
    generation: Type.Integer(),
    fence: Type.Integer(),
    key: text('0195f0c2-0000-7000-8000-000000000001:deploy:1', {
      description: 'The same in each retry of the attempt.',
    }),
    execution_token: text('exe_…', { description: 'Bearer for results_url and artifacts_url.' }),
    deadline_at: text('2026-01-31T12:00:00.000000Z'),
    heartbeat_s: Type.Integer({ description: 'An agent that is silent for three intervals is given up.' }),
    start_before: text('2026-01-31T12:00:00.000000Z', {
      description:
        'A later `started` is refused. Work from POST /v1/pools/{pool}/work must be started within 30 s, or it is handed over again.',
    }),
    results_url: text('https://operations.example/internal/v1/execution-results'),
    artifacts_url: text('https://operations.example/internal/v1/artifacts'),
    job: text('command'),
    inputs: Json,
    secrets: Type.Optional(Json),
    labels: Type.Optional(Json),
    resume: Type.Optional({ ...Json, description: 'What the last attempt left for this one.' }),
    trace: Type.Optional(Type.String()),
  },
  { additionalProperties: true },
)
export type Work = Static<typeof Work>
