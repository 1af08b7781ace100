import type { FastifyRequest } from 'fastify'
import { requireScope } from '../../shared/auth/http.ts'
import { FreezeBody, FreezeParams, FreezeReply, FreezeWithdrawn } from '../../shared/contracts/operations/calendar.ts'
import { routes } from '../../shared/http/routes.ts'
import type { FreezeDeps } from '../deps.ts'
import { type Changer, putOneFreeze, serviceChanger, withdrawOneFreeze } from './freezes.ts'

/** Freezes that control planes put and withdraw while operations run (operations.md 9.3). */
export const freezesRoutes = routes<FreezeDeps>('internal', (app, { deps }) => {
  app.put('/internal/v1/freezes/:freeze_id', {
    operationId: 'setFreeze',
    summary: 'Put a freeze',
    description:
      'Once answered, no node that the freeze covers starts, in new or running operations; running nodes continue. A repeat with the same content has no effect; with different content, earlier overrides no longer count.',
    params: FreezeParams,
    body: FreezeBody,
    response: { 200: FreezeReply },
    preHandler: requireScope('calendar:write'),
    handler: (req) => putOneFreeze(deps, req.params.freeze_id, req.body, changerOf(req)),
  })

  app.delete('/internal/v1/freezes/:freeze_id', {
    operationId: 'withdrawFreeze',
    summary: 'Withdraw a freeze',
    description:
      'The nodes that it held continue automatically. Withdrawing a freeze that does not exist has no effect: `withdrawn` says whether one existed.',
    params: FreezeParams,
    response: { 200: FreezeWithdrawn },
    preHandler: requireScope('calendar:write'),
    handler: (req) => withdrawOneFreeze(deps, req.params.freeze_id, changerOf(req)),
  })
})

const changerOf = (req: FastifyRequest): Changer => serviceChanger(req.service.name, String(req.id), traceOf(req))

export const traceOf = ({ headers: { traceparent } }: FastifyRequest): string | null =>
  typeof traceparent === 'string' ? traceparent : null
