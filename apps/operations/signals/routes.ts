import Type from 'typebox'
import { allow } from '../../shared/auth/http.ts'
import { SignalBody, SignalReply } from '../../shared/contracts/engine/signals.ts'
import { DryRunReply, OperationParams } from '../../shared/contracts/operations/common.ts'
import { CommandHeaders, routes, sendStored } from '../../shared/http/routes.ts'
import { commandOf } from '../command/command.ts'
import { runCommand } from '../command/run.ts'
import type { CommandDeps, ReplanDeps } from '../deps.ts'
import { kindOf, stepsOf } from './steps.ts'

/**
 * Machines' signals: messages to a running operation from a control plane outside the installation. A check that passed
 * opens a gate, so this arms; pausing and canceling have separate routes.
 */
export const signalsRoutes = routes<CommandDeps & ReplanDeps>('operations', (app, { deps }) => {
  app.post('/v1/operations/:operation_id/signals', {
    operationId: 'sendSignal',
    summary: 'Signal an operation',
    description:
      'For machines with the role controller: answers an external_check gate that names this machine, ends a wait for a signal, or reports resources that have changed.',
    params: OperationParams,
    headers: CommandHeaders,
    'x-reply-headers': ['location'],
    body: SignalBody,
    response: { 200: Type.Union([SignalReply, DryRunReply]), 202: SignalReply },
    preHandler: allow('signal:send', { kind: 'A' }),
    handler: async (req, reply) => {
      const { body: signal, params } = req
      const given = { ...kindOf(signal), ...params, reason: signal.reason ?? null, dry_run: signal.dry_run }
      const command = commandOf(deps, req, given)
      const steps = { ...stepsOf(deps, command, signal), render: async () => ({}) }
      return sendStored(reply, await runCommand(deps, command, steps))
    },
  })
})
