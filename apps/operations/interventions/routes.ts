import { allow } from '../../shared/auth/http.ts'
import { DryRunReply, OperationParams } from '../../shared/contracts/operations/common.ts'
import { InterventionBody, InterventionReply } from '../../shared/contracts/operations/nodes.ts'
import { routes, sendStored, VersionedHeaders } from '../../shared/http/routes.ts'
import { commandOf } from '../command/command.ts'
import { runCommand } from '../command/run.ts'
import type { CommandDeps } from '../deps.ts'
import { classOf } from './second.ts'
import { interventionSteps } from './steps.ts'
import type { InterventionDeps } from './types.ts'

/** Interventions: a person's changes to a running operation that its plan does not contain. */
export const interventionsRoutes = routes<CommandDeps & InterventionDeps>('nodes', (app, { deps }) => {
  app.post('/v1/operations/:operation_id/interventions', {
    operationId: 'createIntervention',
    summary: 'Intervene',
    description:
      'Acts outside the plan: states how a node ended, changes its inputs, undoes it, or gives more time or capacity. The payload depends on the type. delegate_gate needs `gate:decide`, every other type `operation:intervene`.',
    params: OperationParams,
    headers: VersionedHeaders,
    'x-reply-headers': ['location'],
    body: InterventionBody,
    response: { 200: DryRunReply, 201: InterventionReply, 202: InterventionReply },
    preHandler: allow(['operation:intervene', 'gate:decide'], { kind: 'A' }),
    handler: async (req, reply) => {
      const { reason, dry_run } = req.body
      const given = { kind: 'intervene', class: classOf(req.body.type), ...req.params, reason, dry_run } as const
      const command = { ...commandOf(deps, req, given), caller: req.caller }
      return sendStored(reply, await runCommand(deps, command, interventionSteps(deps, command, req.body)))
    },
  })
})
