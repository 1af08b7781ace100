import type { FastifyRequest } from 'fastify'
import Type from 'typebox'
import { fingerprintOf } from '../../db/command/keys.ts'
import { getCommand } from '../../db/operations/commands/rows.ts'
import { listMessages } from '../../db/operations/history/log.ts'
import { requireScope } from '../shared/auth/http.ts'
import {
  GateStanding,
  LogMessages,
  LogQueryParams,
  WorkflowSignal,
  WorkflowSignalReply,
} from '../shared/contracts/engine/internal.ts'
import { OperationParams } from '../shared/contracts/operations/common.ts'
import { AppError } from '../shared/errors.ts'
import { routes } from '../shared/http/routes.ts'
import { type Command, ownCommand, type Steps, type Subject } from './command/command.ts'
import { acceptCommand } from './command/run.ts'
import type { AcceptDeps, ReplanDeps, Uses } from './deps.ts'
import { proveDue } from './gates/standing.ts'
import { kindOf, stepsOf } from './signals/steps.ts'

/** The internal listener's own endpoints: signals of control planes, and the log of events. */
export const internalRoutes = routes<AcceptDeps & ReplanDeps>('internal', (app, { deps }) => {
  app.post('/internal/v1/workflow-signals/:operation_id', {
    operationId: 'signalOperation',
    summary: 'Signal a running operation',
    description:
      'Carries out a command of a control plane under the same rules as the public commands. Answered once it is accepted; signal_id is the command id, and a repeat is a duplicate.',
    params: OperationParams,
    body: WorkflowSignal,
    response: { 202: WorkflowSignalReply },
    preHandler: requireScope('signals:write'),
    handler: async (req, reply) => {
      const signal = req.body
      const command = commandOfService(deps, req, req.params.operation_id, signal)
      const steps = notTaken(command, stepsOf(deps, command, signal))
      const accepted = await acceptCommand(deps, command, steps)
      const duplicate = 'command_id' in accepted && accepted.repeated
      const row = await getCommand(deps.db, signal.signal_id)
      return reply
        .code(202)
        .send({ command_id: signal.signal_id, status: row?.command.status ?? 'accepted', duplicate })
    },
  })

  app.get('/internal/v1/events', {
    operationId: 'listEvents',
    summary: 'Read the log of events',
    description:
      'Returns events after a position, or those of one aggregate after a version, so that a consumer can fill a gap.',
    querystring: LogQueryParams,
    response: { 200: LogMessages },
    preHandler: requireScope('events:read'),
    handler: (req) => {
      const { after, agg_type, agg_id, after_version = 0, limit = 100 } = req.query
      if ((agg_type === undefined) !== (agg_id === undefined))
        throw new AppError('validation_error', 'schema_violation', 'agg_type and agg_id belong together.')
      const aggregate = agg_type !== undefined && agg_id !== undefined ? { agg_type, agg_id, after_version } : undefined
      return listMessages(deps.db, { after: after ?? '0', aggregate, limit })
    },
  })
})

type StandingDeps = Uses<'config' | 'db' | 'lookback_s' | 'nats' | 'trust'>

/** Lets workers have voters proved before a node behind their gate starts. */
export const standingRoutes = routes<StandingDeps>('internal', (app, { deps }) => {
  /** When many nodes start behind one gate at once, they share one answer. */
  const running = new Map<string, Promise<void>>()

  app.post('/internal/v1/gate-standing', {
    operationId: 'proveGates',
    summary: 'Prove the voters of gates',
    description:
      'Asks identity about everyone whose approvals these gates rest on, unless it was asked a moment ago. Votes that no longer count become void, and a gate without a quorum asks again. 503 while identity is unavailable.',
    body: GateStanding,
    response: { 204: Type.Null() },
    preHandler: requireScope('gates:recheck'),
    handler: async (req, reply) => {
      const { operation_id, gate_ids } = req.body
      const key = [operation_id, ...gate_ids.toSorted()].join(' ')
      const proving = running.get(key) ?? proveDue(deps, operation_id, gate_ids).finally(() => void running.delete(key))
      running.set(key, proving)
      await proving
      return reply.code(204).send(null)
    },
  })
})

const commandOfService = (
  deps: Uses<'keys'>,
  req: FastifyRequest,
  operation_id: string,
  signal: WorkflowSignal,
): Command => {
  const id = `svc:${req.service.name}`
  const { traceparent } = req.headers
  return ownCommand({
    ...kindOf(signal),
    operation_id,
    command_id: signal.signal_id,
    actor: { kind: 'service', id, name: req.service.name },
    reason: signal.reason ?? null,
    request_id: String(req.id),
    trace: typeof traceparent === 'string' ? traceparent : null,
    instance: req.url.split('?')[0] ?? '/',
    request: {
      caller: id,
      route: `${req.method} ${req.routeOptions.url ?? ''}`,
      key: signal.signal_id,
      fingerprint: fingerprintOf(deps.keys.fingerprint, { operation_id, signal }),
    },
  })
}

/** Refuses a signal id that already names another command, before anything is locked. */
const notTaken = (command: Command, steps: Steps<Subject>): Steps<Subject> => ({
  ...steps,
  lock: async (tx) => {
    if (command.command_id && (await getCommand(tx, command.command_id)))
      throw new AppError('validation_error', 'idempotency_key_reused', 'This signal_id names another command.')
    return steps.lock(tx)
  },
})
