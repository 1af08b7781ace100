import Type from 'typebox'
import { allow } from '../../shared/auth/http.ts'
import {
  FreezeCreation,
  FreezeEnd,
  FreezeEnded,
  FreezeItem,
  FreezeParams,
} from '../../shared/contracts/operations/calendar.ts'
import { DryRunReply } from '../../shared/contracts/operations/common.ts'
import { CommandHeaders, routes, sendStored } from '../../shared/http/routes.ts'
import { mutationOf } from '../command/mutate.ts'
import type { FreezeDeps, Uses } from '../deps.ts'
import { traceOf } from './freezes.routes.ts'
import { createFreeze, endFreeze } from './people.ts'

/** Freezes that people make and end (operations.md 9.3). */
export const peopleFreezesRoutes = routes<FreezeDeps & Uses<'trust'>>('plans', (app, { deps }) => {
  app.post('/v1/freezes', {
    operationId: 'createFreeze',
    summary: 'Create a freeze',
    description:
      'Once answered, no node that the freeze covers starts, in new or running operations; running nodes continue. It covers resources only where you may control operations. A dry run counts them, and names who may end the freeze.',
    headers: CommandHeaders,
    body: FreezeCreation,
    response: { 201: FreezeItem, 200: DryRunReply },
    preHandler: allow('operation:control', { kind: 'S' }),
    handler: async (req, reply) =>
      sendStored(reply, await createFreeze(deps, mutationOf(deps, req), traceOf(req), req.body)),
  })

  app.post('/v1/freezes/:freeze_id/end', {
    operationId: 'endFreeze',
    summary: 'End or shorten a freeze',
    description:
      'Ends it now, or at an earlier time than planned. The nodes that it held continue automatically. Members of its approver groups can end a freeze that a person made; a freeze from a file or a control plane ends there.',
    params: FreezeParams,
    headers: CommandHeaders,
    body: FreezeEnd,
    response: { 200: Type.Union([FreezeEnded, DryRunReply]) },
    preHandler: allow('gate:decide', { kind: 'A' }),
    handler: async (req, reply) =>
      sendStored(reply, await endFreeze(deps, mutationOf(deps, req), traceOf(req), req.params.freeze_id, req.body?.at)),
  })
})
