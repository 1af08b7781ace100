import { randomBytes } from 'node:crypto'
import { Client, Connection } from '@temporalio/client'
import { defaultPayloadConverter, toPayloads } from '@temporalio/common'
import {
  bundleWorkflowCode,
  DefaultLogger,
  NativeConnection,
  Runtime,
  Worker,
  type WorkerOptions,
} from '@temporalio/worker'
import { eq, sql } from 'drizzle-orm'
import type pg from 'pg'
import type { CatalogWriter } from '../../../activities/catalog.client.ts'
import type { ActivityDeps } from '../../../activities/deps.ts'
import { createExecutors } from '../../../activities/executors/index.ts'
import { loadPolicy } from '../../../activities/executors/policy.ts'
import { createBookkeeping, createExecution, createLocal } from '../../../activities/index.ts'
import { createSinks } from '../../../activities/sinks.ts'
import { dataConverterOf, type EncryptingCodec, FAILURES } from '../../../apps/shared/codec/payload.ts'
import type { GatePolicy, PlanGate, PlanGraph, PlanNode } from '../../../apps/shared/contracts/operations/graph.ts'
import type { OperationCalendar } from '../../../apps/shared/data/calendar.ts'
import { digest } from '../../../apps/shared/data/digest.ts'
import { uuidv7 } from '../../../apps/shared/ids.ts'
import { createTelemetry } from '../../../apps/shared/telemetry.ts'
import { bundleOnce } from '../../../apps/worker/bundle.ts'
import { createNats } from '../../../apps/worker/nats.ts'
import { createDb } from '../../../db/client.ts'
import { appendCommand } from '../../../db/operations/commands/rows.ts'
import { SYSTEM } from '../../../db/operations/facts/state.ts'
import { type Lease, takeLeases } from '../../../db/operations/leases/rows.ts'
import { insertOperation } from '../../../db/operations/operations/insert.ts'
import { intents, operation_control, plans } from '../../../db/operations/tables/index.ts'
import {
  bookkeepingQueue,
  COMMAND_SIGNAL,
  type CommandBodies,
  type CommandKind,
  type CommandMessage,
  type OperationInput,
  operationQueue,
  WORKFLOW_TYPE,
} from '../../../workflows/operation/messages.ts'
import { serverUrl, testDatabase } from '../../support/database.ts'
import { startLink } from '../../support/link.ts'
import { until } from '../../support/until.ts'

export const WORKFLOWS = new URL('../../../workflows/index.ts', import.meta.url).pathname
export const TEST_POLICY = new URL('./policy.yaml', import.meta.url).pathname

let installed = false
const install = () => {
  if (installed) return
  installed = true
  Runtime.install({
    logger: new DefaultLogger('ERROR'),
    telemetryOptions: { logging: { forward: {}, filter: 'ERROR' } },
  })
}

/** A node of a test plan; omitted members have their defaults. */
export const node = (node_id: string, more: Partial<PlanNode> = {}): PlanNode => ({
  node_id,
  name: `Do ${node_id}`,
  kind: 'task',
  executor: 'noop',
  with: {},
  depends_on: [],
  join: 'all',
  idempotent: true,
  timeouts: { run_s: 60 },
  retry: { max_attempts: 1, initial_s: 0.1, factor: 2, max_s: 1 },
  on_failure: 'hold',
  skippable: true,
  ...more,
})

export const gate = (gate_id: string, guards: string[], policy: Partial<GatePolicy> = {}): PlanGate => ({
  gate_id,
  kind: 'approval',
  question: 'Go on?',
  guards,
  policy: {
    key: 'go',
    digest: 'sha256:0',
    quorum: 1,
    groups: [],
    four_eyes: false,
    reject_rule: 'any',
    comment_on_approve: false,
    deadline_s: 3600,
    escalation: [],
    on_timeout: 'reject',
    on_reject: 'fail_nodes',
    lease_policy: 'hold',
    binds: [],
    ...policy,
  },
})

export type Spec = {
  nodes: PlanNode[]
  gates?: PlanGate[]
  max_parallel?: number
  constraints?: Record<string, unknown>
  deadline_s?: number
  pins?: { resource_id: string; version: number }[]
  roll_events?: number
  calendar?: OperationCalendar
  /** Held from the start, or taken once it may begin. */
  leases?: Lease[]
  lease_state?: 'released'
  risk_level?: 'low' | 'medium' | 'high' | 'critical'
}

const NO_GRAPH: PlanGraph = { nodes: [], groups: [], gates: [], critical_path: [] }
/** A catalog that accepts no writes, and holds what a test has put into the projection. */
const projectedCatalog = (pool: pg.Pool): CatalogWriter => ({
  apply: async () => ({ status: 'refused', message: 'no catalog in this test' }),
  documentOf: async () => undefined,
  versionOf: async (resource_id) => {
    const known = 'select version::int from operations.catalog_resources where resource_id = $1'
    return (await pool.query<{ version: number }>(known, [resource_id])).rows[0]?.version
  },
})

/**
 * Real Temporal, real Postgres, real worker; the test itself plays the API's part (rows of a decision) and the relay's
 * (the signal with requestId = command_id).
 */
/** No one loses a right here: every voter is proved. */
const proveAll = async (pool: pg.Pool, operation_id: string, gate_ids: readonly string[]): Promise<undefined> => {
  await pool.query(
    'update operations.gates set standing_at = clock_timestamp() where operation_id = $1 and gate_id = any($2)',
    [operation_id, gate_ids],
  )
}

export const createEngine = async (
  options: {
    catalog?: CatalogWriter
    worker?: Partial<WorkerOptions>
    linked?: boolean
    /** Another build of the workflows. */
    workflows?: string
    /** Encrypts the data that the engine stores. */
    codec?: EncryptingCodec
  } = {},
) => {
  install()
  const database = await testDatabase('operations')
  const prefix = `t${randomBytes(4).toString('hex')}-`
  const { db, pool, close } = createDb(database.url, { app: 'test', max: 30 })
  // The worker's own link to Postgres, so that a test can cut it and still look.
  const link = options.linked ? await startLink(database.url) : undefined
  const linked = link && createDb(link.url, { app: 'test', max: 10, statement_timeout_ms: 5000 })
  const telemetry = createTelemetry('test')
  const policy = loadPolicy(TEST_POLICY)
  const nats = createNats(serverUrl('NATS_URL'), prefix, telemetry.log)
  const deps: ActivityDeps = {
    db: linked?.db ?? db,
    pool: linked?.pool ?? pool,
    log: telemetry.log,
    policy,
    agents: nats.agents,
    executors: createExecutors(policy, {
      pool: linked?.pool ?? pool,
      agents_url: 'http://127.0.0.1:9',
      agents: nats.agents,
      env: {},
    }),
    secrets_dir: '/nonexistent',
    env: { TEST_TOKEN: 'Bearer s3cret-token' },
    catalog: options.catalog ?? projectedCatalog(pool),
    leave: new AbortController().signal,
    limits: { max_parallel: 500, slice_s: 30, force_grace_s: 2, standing_s: 5 },
    standing: { prove: (operation_id, gate_ids) => proveAll(pool, operation_id, gate_ids) },
    wake: () => {},
    observe: { attempt: () => {}, refused: () => {} },
  }
  const connection = await NativeConnection.connect({
    address: serverUrl('TEMPORAL_ADDRESS'),
    grpcCompression: { codec: 'none' },
  })
  const dataConverter = dataConverterOf(options.codec)
  const converting = dataConverter && { dataConverter }
  const client = new Client({
    connection: await Connection.connect({ address: serverUrl('TEMPORAL_ADDRESS') }),
    ...converting,
  })
  let running: { workers: Worker[]; runs: Promise<void>[] } | undefined
  const bundleOf = (workflowsPath: string) => {
    const build = workflowsPath === WORKFLOWS ? bundleOnce : bundleWorkflowCode
    const logger = new DefaultLogger('ERROR')
    return build({ workflowsPath, logger, ...(dataConverter && { failureConverterPath: FAILURES }) })
  }
  let bundle = await bundleOf(options.workflows ?? WORKFLOWS)

  const startWorkers = async () => {
    const common = {
      connection,
      namespace: 'default',
      shutdownGraceTime: '2s',
      shutdownForceTime: '5s',
      ...converting,
    } as const
    const workers = [
      await Worker.create({
        ...common,
        taskQueue: operationQueue(prefix),
        workflowBundle: bundle,
        sinks: createSinks(deps),
        activities: { ...createLocal(deps), ...createExecution(deps) },
        workflowThreadPoolSize: 1,
        maxCachedWorkflows: 100,
        ...options.worker,
      }),
      await Worker.create({ ...common, taskQueue: bookkeepingQueue(prefix), activities: createBookkeeping(deps) }),
    ]
    running = { workers, runs: workers.map((worker) => worker.run()) }
  }
  const stopWorkers = async () => {
    for (const worker of running?.workers ?? []) worker.shutdown()
    await Promise.all(running?.runs ?? [])
    running = undefined
  }

  const prepare = async (spec: Spec): Promise<OperationInput> => {
    const [operation_id, intent_id, plan_id] = [uuidv7(), uuidv7(), uuidv7()]
    const plan_hash = digest(spec.nodes)
    const command_id = uuidv7()
    await db.transaction(async (tx) => {
      await tx
        .insert(intents)
        .values({
          intent_id,
          status: 'executing',
          kind: 'graph',
          title: 'Test',
          reason: 'a test',
          request: {},
          targets_resolved: [],
          requester: SYSTEM,
          requester_id: 'system',
          labels: {},
          constraints: {},
          operation_id,
          expires_at: new Date(Date.now() + 3_600_000).toISOString(),
        })
      await tx
        .insert(plans)
        .values({
          plan_id,
          intent_id,
          status: 'locked',
          plan_hash,
          semantic_digest: plan_hash,
          document: { leases: spec.leases ?? [] } as never,
          report: {},
          graph: NO_GRAPH,
          requester_id: 'system',
          operation_id,
          expires_at: new Date(Date.now() + 3_600_000).toISOString(),
        })
      await insertOperation(tx, {
        operation_id,
        intent_id,
        plan_id,
        plan_hash,
        title: 'Test',
        kind: 'graph',
        requester: SYSTEM,
        starter_id: 'system',
        involved: ['system'],
        risk_level: spec.risk_level ?? 'low',
        labels: {},
        ticket: null,
        retry_of: null,
        constraints: spec.constraints ?? {},
        max_parallel: spec.max_parallel ?? 10,
        deadline_s: spec.deadline_s ?? null,
        estimate_s: 10,
        pins: spec.pins ?? [],
        graph: NO_GRAPH,
        calendar: spec.calendar ?? null,
        ...(spec.lease_state && { lease_state: spec.lease_state }),
        nodes: spec.nodes.map((n) => ({ ...n, spec_digest: digest(n) })),
        gates: (spec.gates ?? []).map((g) => ({ ...g, subject: {} as never, digest: digest(g) })),
        resources: [],
      })
      await takeLeases(tx, operation_id, spec.leases ?? [], { queue: false, later: spec.lease_state !== undefined })
      await appendCommand(tx, {
        command_id,
        operation_id,
        kind: 'start',
        class: 'start',
        payload: {},
        actor: SYSTEM,
        reason: null,
        request_id: null,
        trace: null,
        undo: null,
        deadline_s: 300,
        decided: true,
      })
    })
    await db.execute(
      sql`update operations.operation_commands set status = 'delivered' where command_id = ${command_id}`,
    )
    return {
      v: 1,
      operation_id,
      title: 'Test',
      plan_id,
      plan_hash,
      requester: 'system',
      kind: 'graph',
      start: message('start', {}, { command_id, seq: 1, not_after: new Date(Date.now() + 300_000).toISOString() }),
      bookkeeping_queue: bookkeepingQueue(prefix),
      search_attributes: true,
      ...(spec.roll_events !== undefined && { test_roll_events: spec.roll_events }),
    }
  }

  const launch = (input: OperationInput) =>
    client.workflow.start(WORKFLOW_TYPE, {
      args: [input],
      workflowId: input.operation_id,
      taskQueue: operationQueue(prefix),
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
      workflowIdConflictPolicy: 'USE_EXISTING',
      staticSummary: input.title,
    })

  /** A decided command: its rows in one transaction, then the signal. `late`: the relay sends it when told to. */
  const command = async <K extends CommandKind>(
    operation_id: string,
    kind: K,
    body: CommandBodies[K],
    rows: (tx: Parameters<Parameters<typeof db.transaction>[0]>[0]) => Promise<unknown> = async () => {},
    more: { not_after?: string; send?: boolean; undo?: Record<string, unknown> } = {},
  ) => {
    const command_id = uuidv7()
    const seq = await db.transaction(async (tx) => {
      await tx.select().from(operation_control).where(eq(operation_control.operation_id, operation_id)).for('update')
      await rows(tx)
      return appendCommand(tx, {
        command_id,
        operation_id,
        kind,
        class: kind === 'pause' || kind === 'cancel' ? 'stop' : 'start',
        payload: body as Record<string, unknown>,
        actor: SYSTEM,
        reason: null,
        request_id: null,
        trace: null,
        undo: more.undo ?? null,
        deadline_s: 300,
        decided: true,
      })
    })
    const send = () =>
      signal(
        operation_id,
        message(kind, body, { command_id, seq, not_after: more.not_after ?? null }) as CommandMessage,
      )
    if (more.send !== false) await send()
    return { command_id, seq, send }
  }

  const signal = async (operation_id: string, sent: CommandMessage) => {
    const plain = toPayloads(defaultPayloadConverter, sent) ?? []
    const context = { type: 'workflow', namespace: 'default', workflowId: operation_id } as const
    await client.workflowService.signalWorkflowExecution({
      namespace: 'default',
      workflowExecution: { workflowId: operation_id },
      signalName: COMMAND_SIGNAL,
      requestId: sent.command_id,
      identity: 'test',
      input: { payloads: (await options.codec?.encode(plain, context)) ?? plain },
    })
    await db.execute(
      sql`update operations.operation_commands set status = 'delivered' where command_id = ${sent.command_id} and status in ('pending', 'sending')`,
    )
  }

  /** Sends the commands that the rows themselves created (a grant, drift), as the relay would. */
  const sendPending = async (operation_id: string) => {
    const { rows } = await pool.query<{ command_id: string; seq: string; kind: CommandKind; payload: never }>(
      `select command_id, seq, kind, payload from operations.operation_commands where operation_id = $1 and status = 'pending' order by seq`,
      [operation_id],
    )
    for (const { command_id, seq, kind, payload } of rows)
      await signal(operation_id, message(kind, payload, { command_id, seq: Number(seq), not_after: null }) as never)
    return rows.map(({ kind }) => kind)
  }

  const control = (operation_id: string, set: Partial<typeof operation_control.$inferInsert>) =>
    db.update(operation_control).set(set).where(eq(operation_control.operation_id, operation_id))

  const read = {
    operation: async (operation_id: string) =>
      (await pool.query('select * from operations.operation_summary_view where operation_id = $1', [operation_id]))
        .rows[0],
    states: async (operation_id: string): Promise<Record<string, string>> =>
      Object.fromEntries(
        (
          await pool.query('select node_id, state from operations.nodes where operation_id = $1 order by ordinal', [
            operation_id,
          ])
        ).rows.map(({ node_id, state }) => [node_id, state]),
      ),
    node: async (operation_id: string, node_id: string) =>
      (
        await pool.query('select * from operations.nodes where operation_id = $1 and node_id = $2', [
          operation_id,
          node_id,
        ])
      ).rows[0],
    attempts: async (operation_id: string) =>
      (
        await pool.query(
          'select * from operations.node_attempts where operation_id = $1 order by node_id, role, attempt',
          [operation_id],
        )
      ).rows,
    gate: async (operation_id: string, gate_id: string) =>
      (
        await pool.query('select * from operations.gates where operation_id = $1 and gate_id = $2', [
          operation_id,
          gate_id,
        ])
      ).rows[0],
    timeline: async (operation_id: string) =>
      (
        await pool.query('select * from operations.operation_timeline_view where operation_id = $1 order by seq', [
          operation_id,
        ])
      ).rows,
    command: async (command_id: string) =>
      (await pool.query('select * from operations.operation_commands where command_id = $1', [command_id])).rows[0],
  }

  await startWorkers()
  return {
    /** The worker's link to Postgres, if requested. */
    link,
    db,
    pool,
    client,
    deps,
    prefix,
    database_url: database.url,
    prepare,
    launch,
    signal,
    command,
    sendPending,
    control,
    read,
    startWorkers,
    stopWorkers,
    /** Runs another build of the workflows from now on. */
    deploy: async (workflowsPath: string) => {
      bundle = await bundleOf(workflowsPath)
      await stopWorkers()
      await startWorkers()
    },
    start: async (spec: Spec) => {
      const input = await prepare(spec)
      await launch(input)
      return input.operation_id
    },
    ends: (operation_id: string) =>
      client.workflow.getHandle(operation_id).result() as Promise<{ status: string; end_reason: string | null }>,
    statusIs: (operation_id: string, status: string, timeout_ms = 20_000) =>
      until(async () => (await read.operation(operation_id))?.status === status, {
        timeout_ms,
        what: `operation is ${status}`,
      }),
    close: async () => {
      await stopWorkers().catch(() => {})
      await client.connection.close()
      await connection.close()
      await linked?.close()
      await nats.close()
      link?.stop()
      await close()
      await database.drop()
    },
  }
}
export type Engine = Awaited<ReturnType<typeof createEngine>>

const message = <K extends CommandKind>(
  kind: K,
  body: CommandBodies[K],
  { command_id, seq, not_after }: { command_id: string; seq: number; not_after: string | null },
) =>
  ({
    v: 1,
    command_id,
    seq,
    kind,
    at: new Date().toISOString(),
    not_after,
    actor: SYSTEM,
    request_id: null,
    trace: null,
    reason: null,
    body,
  }) as CommandMessage<K>
