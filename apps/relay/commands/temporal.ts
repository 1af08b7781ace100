import {
  Client,
  Connection,
  isGrpcServiceError,
  WorkflowExecutionAlreadyStartedError,
  type WorkflowStartOptions,
} from '@temporalio/client'
import {
  defaultPayloadConverter,
  defineSearchAttributeKey,
  TypedSearchAttributes,
  toPayloads,
} from '@temporalio/common'
import type pg from 'pg'
import {
  COMMAND_SIGNAL,
  type CommandMessage,
  type OperationInput,
  operationQueue,
  type SEARCH_ATTRIBUTES,
  WORKFLOW_TYPE,
} from '../../../workflows/operation/messages.ts'
import { dataConverterOf, loadPayloadCodec } from '../../shared/codec/payload.ts'
import { inMarkdown } from '../../shared/contracts/engine/texts.ts'
import { linksOfProcess, temporalOptions } from '../../shared/links.ts'
import type { Logger } from '../../shared/telemetry.ts'
import { onRenewal } from '../../shared/tls/pairs.ts'
import type { RelayConfig } from '../config.ts'

/** Milliseconds that a call to the engine may take. */
const DEADLINE_MS = 10_000
const HEALTH_MS = 1500

/** The result of a send: carried out, to be retried, no such workflow, or refused for its content. */
export type Sent =
  | { kind: 'sent' }
  | { kind: 'again'; error: string }
  | { kind: 'gone' }
  | { kind: 'invalid'; error: string }
export type Described = 'running' | 'closed' | 'gone'

/** A client of the engine that connects on first use. */
export const connectEngine = (config: RelayConfig) => {
  const connection = Connection.lazy(temporalOptions(config.RELAY__TEMPORAL__ADDRESS))
  const namespace = config.RELAY__TEMPORAL__NAMESPACE
  const codec = loadPayloadCodec('RELAY__TEMPORAL__PAYLOAD_KEYS', config.RELAY__TEMPORAL__PAYLOAD_KEYS)
  const dataConverter = dataConverterOf(codec)
  const client = new Client({ connection, namespace, ...(dataConverter && { dataConverter }) })
  return { connection, client, codec, namespace }
}

/** The relay's view of the engine: start once, signal with a request id, describe. Lazy, so that it runs without Temporal. */
export const createEngine = (config: RelayConfig, deadline_ms = DEADLINE_MS) => {
  let { connection, client, codec, namespace } = connectEngine(config)
  const endRenewal = onRenewal(linksOfProcess().tls, () => {
    const before = connection
    ;({ connection, client } = connectEngine(config))
    void before.close()
  })
  const withDeadline = <T>(run: () => Promise<T>) => client.withDeadline(Date.now() + deadline_ms, run)

  /** Throws if the engine has no such namespace: the operation may well live in another. */
  const describe = async (operation_id: string): Promise<Described> => {
    try {
      const { status } = await withDeadline(() => client.workflow.getHandle(operation_id).describe())
      return status.name === 'RUNNING' ? 'running' : 'closed'
    } catch (error) {
      if ((error as Error).name === 'WorkflowNotFoundError') return 'gone'
      throw error
    }
  }

  return {
    namespace,
    /** Where it is asked for the namespace. */
    place: `${config.RELAY__TEMPORAL__ADDRESS}/${namespace}`,

    identity: () => identityOf(client, namespace),

    /** Starts the workflow of an operation; an existing one counts as success (operations.md 1.3). */
    start: (input: OperationInput): Promise<Sent> =>
      attempt(async () => {
        const options = startOf(input, operationQueue(config.RELAY__TEMPORAL__QUEUE_PREFIX))
        await withDeadline(() => client.workflow.start(WORKFLOW_TYPE, options))
      }),

    /**
     * Delivers a command. The server drops a repeated request id in a run; the reducer knows other repeats by seq. The
     * raw call answers an unknown namespace like an unknown operation, so a second call tells them apart.
     */
    signal: async (operation_id: string, message: CommandMessage): Promise<Sent> => {
      const sent = await attempt(async () => {
        const plain = toPayloads(defaultPayloadConverter, message) ?? []
        // The raw call sets the request id, and bypasses the client's codec.
        const payloads = (await codec?.encode(plain, contextOf(namespace, operation_id))) ?? plain
        await withDeadline(() =>
          client.workflowService.signalWorkflowExecution({
            namespace,
            workflowExecution: { workflowId: operation_id },
            signalName: COMMAND_SIGNAL,
            requestId: message.command_id,
            identity: 'signalbox-relay',
            input: { payloads },
          }),
        )
      })
      if (sent.kind !== 'gone') return sent
      const found = await describe(operation_id).catch((error: Error) => error)
      if (found === 'gone' || found === 'closed') return sent
      return { kind: 'again', error: found === 'running' ? 'the engine missed a running operation' : found.message }
    },

    describe,

    health: () =>
      client
        .withDeadline(Date.now() + HEALTH_MS, () =>
          connection.healthService.check({ service: 'temporal.api.workflowservice.v1.WorkflowService' }),
        )
        .then(() => undefined),
    close: () => {
      endRenewal()
      return connection.close()
    },
  }
}
export type Engine = ReturnType<typeof createEngine>

/** What an engine answers that may not tell this caller the id of its namespace. */
const HIDDEN = 'hidden'
const PERMISSION_DENIED = 7

/** The id that the engine gave to the namespace when it was created; `undefined` while it does not answer. */
const identityOf = (client: Client, namespace: string): Promise<string | undefined> =>
  client
    .withDeadline(Date.now() + HEALTH_MS, () => client.workflowService.describeNamespace({ namespace }))
    .then(({ namespaceInfo }) => namespaceInfo?.id ?? undefined)
    .catch((error: unknown) => (codeOf(error) === PERMISSION_DENIED ? HIDDEN : undefined))

const startOf = (input: OperationInput, taskQueue: string): WorkflowStartOptions => ({
  args: [input],
  workflowId: input.operation_id,
  taskQueue,
  workflowIdReusePolicy: 'REJECT_DUPLICATE',
  workflowIdConflictPolicy: 'USE_EXISTING',
  memo: { operation_id: input.operation_id, title: input.title, plan_hash: input.plan_hash },
  staticSummary: inMarkdown(input.title).slice(0, 100),
  staticDetails: detailsOf(input),
  ...(input.search_attributes && { typedSearchAttributes: initialAttributes(input) }),
})

/** The details that an engineer needs to continue on the engine's own pages. */
const detailsOf = ({ operation_id, plan_id, plan_hash, kind, requester, page }: OperationInput): string =>
  [
    `Operation \`${operation_id}\` of kind ${kind}, requested by \`${requester}\`.`,
    `It carries out plan \`${plan_id}\`, reviewed as \`${plan_hash}\`.`,
    ...(page === undefined ? [] : [`[Its page in the console](${page})`]),
  ].join('\n\n')

const contextOf = (namespace: string, workflowId: string) => ({ type: 'workflow', namespace, workflowId }) as const

const initialAttributes = (input: OperationInput) => {
  const key = <K extends keyof typeof SEARCH_ATTRIBUTES>(name: K) => defineSearchAttributeKey(name, 'KEYWORD')
  return new TypedSearchAttributes([
    { key: key('OpStatus'), value: 'queued' },
    { key: key('OpKind'), value: input.kind },
    { key: key('PlanId'), value: input.plan_id },
    { key: key('Requester'), value: input.requester },
  ])
}

const codeOf = (error: unknown): number | undefined => {
  const inner = isGrpcServiceError(error) ? error : (error as { cause?: unknown }).cause
  return isGrpcServiceError(inner) ? inner.code : undefined
}

/** gRPC codes: 3 invalid argument, 5 not found, 8 exhausted (also "workflow is closing"), 14 unavailable, 4 deadline. */
const attempt = async (run: () => Promise<void>): Promise<Sent> => {
  try {
    await run()
    return { kind: 'sent' }
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return { kind: 'sent' }
    const code = codeOf(error)
    if (code === 5) return { kind: 'gone' }
    if (code === 3) return { kind: 'invalid', error: (error as Error).message }
    return { kind: 'again', error: `${(error as Error).message}${code === undefined ? '' : ` (${code})`}` }
  }
}

/** How long an answer counts: a relay that is set to another engine is started anew. */
const TRUSTED_MS = 5000

const KEEP = `insert into operations.relay_state (name, stream_created) values ('engine', $1)
  on conflict (name) do update set stream_created = excluded.stream_created`

/** Makes the engine that the relay is set to the one in which this database's operations run. */
export const adoptEngine = async (pool: pg.Pool, engine: Engine): Promise<void> => {
  const id = await engine.identity()
  if (id !== undefined) await pool.query(KEEP, [`${id} ${engine.place}`])
}

/**
 * Throws if the relay is set to another engine than the one in which this database's operations run: that one does not
 * know them, so no command may reach it. The same namespace has the same id at every address. A new id at the known
 * address means that the engine has lost its data; a new id at another address, that the relay asks at the wrong place.
 * If an engine hides the id, only the known address is trusted.
 */
export const refuseOther = async (pool: pg.Pool, engine: Engine, log?: Logger): Promise<void> => {
  const id = await engine.identity()
  if (id === undefined) return
  const { rows } = await pool.query<{ known: string }>(
    `select stream_created as known from operations.relay_state where name = 'engine'`,
  )
  const [known, place] = rows[0]?.known.split(' ') ?? []
  if (place === engine.place && (known === id || id === HIDDEN)) return
  if (known !== undefined && place !== engine.place && (known === HIDDEN || id === HIDDEN))
    throw new Error(
      `${engine.place} may be another engine than ${place}, where the operations run: let the relay's account describe the namespace, or compare them by npm run ops -- reconcile --apply`,
    )
  if (known !== undefined && known !== id && place !== engine.place)
    throw new Error(
      `${engine.place} is another engine than ${place}, where the operations run: set the relay to that one, or give them up by npm run ops -- reconcile --apply`,
    )
  if (known !== undefined && known !== id && known !== HIDDEN)
    log?.error({ place }, 'the engine at the known address has lost its data')
  await pool.query(KEEP, [`${id} ${engine.place}`])
}

/** `refuseOther` for frequent callers: only the first answer is waited for, and later ones are asked for beside the work. */
export const createPlaceGuard = (pool: pg.Pool, engine: Engine, log: Logger) => {
  let asked_at = Number.NEGATIVE_INFINITY
  let first: Promise<void> | undefined
  let refused: unknown
  const ask = async (): Promise<void> => {
    asked_at = performance.now()
    refused = await refuseOther(pool, engine, log).then(
      () => undefined,
      (error: unknown) => error,
    )
  }
  return async (): Promise<void> => {
    first ??= ask()
    await first
    if (refused) await ask()
    else if (performance.now() - asked_at > TRUSTED_MS) void ask()
    if (refused) throw refused
  }
}
