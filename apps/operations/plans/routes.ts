import Type from 'typebox'
import { getPlanGraph } from '../../../db/operations/plans/rows.ts'
import { allow } from '../../shared/auth/http.ts'
import { DryRunReply } from '../../shared/contracts/operations/common.ts'
import { IntentParams, PreviewBody } from '../../shared/contracts/operations/intents.ts'
import { OperationGraph } from '../../shared/contracts/operations/operations.ts'
import {
  PlanGraphQuery,
  PlanParams,
  PlanQuery,
  PlanView,
  ProcedureList,
} from '../../shared/contracts/operations/plans.ts'
import { digest } from '../../shared/data/digest.ts'
import { notFound } from '../../shared/errors.ts'
import { CommandHeaders, ReadHeaders, routes, sendStored } from '../../shared/http/routes.ts'
import { mutationOf } from '../command/mutate.ts'
import { unlessKnown } from '../command/reply.ts'
import type { PlanningDeps, Uses } from '../deps.ts'
import { viewGraph } from '../graph/drawing.ts'
import { previewPlan, readPlan, renderPlan } from './preview.ts'

/** Plans: what an intent would do, and the start of exactly that. */
export const plansRoutes = routes<PlanningDeps & Uses<'db' | 'keys' | 'policies' | 'projection' | 'trust'>>(
  'plans',
  (app, { deps }) => {
    app.post('/v1/intents/:intent_id/plan-preview', {
      operationId: 'previewPlan',
      summary: 'Preview the plan of an intent',
      description:
        'Plans the intent against the current catalog. Returns the previous plan (200) if the new one would do the same, else a new plan that replaces it (201).',
      tags: ['intents'],
      params: IntentParams,
      headers: CommandHeaders,
      'x-reply-headers': ['location'],
      body: PreviewBody,
      response: { 201: PlanView, 200: Type.Union([PlanView, DryRunReply]) },
      preHandler: allow('intent:create', { kind: 'W' }),
      handler: async (req, reply) =>
        sendStored(reply, await previewPlan(deps, mutationOf(deps, req), req.params.intent_id, req.body)),
    })

    app.get('/v1/plans/:plan_id', {
      operationId: 'getPlan',
      summary: 'Read a plan',
      description: 'Returns the changes, the risk, who must agree, conflicts, and changes since the plan was made.',
      params: PlanParams,
      querystring: PlanQuery,
      headers: ReadHeaders,
      'x-reply-headers': ['etag'],
      response: { 200: PlanView, 304: Type.Null() },
      preHandler: allow('operation:read', { kind: 'R' }),
      handler: async (req, reply) => {
        const plan = await renderPlan(deps, deps.db, req.caller, req.params.plan_id, req.query.diff_after)
        // The obstacles and moved targets change without the plan, so the ETag covers everything shown.
        return unlessKnown(req, reply, `"${digest(plan).slice('sha256:'.length)}"`, plan)
      },
    })

    app.get('/v1/plans/:plan_id/graph', {
      operationId: 'getPlanGraph',
      summary: 'Read the graph of a plan',
      description: 'Returns every node that would run, in rank order. Equal plans give equal bytes.',
      params: PlanParams,
      querystring: PlanGraphQuery,
      response: { 200: OperationGraph },
      preHandler: allow('operation:read', { kind: 'R' }),
      handler: async (req) => {
        await readPlan(deps.db, req.caller, req.params.plan_id)
        const found = await getPlanGraph(deps.db, req.params.plan_id)
        if (!found) throw notFound('plan', req.params.plan_id)
        const { graph, plan_hash, created_at: as_of } = found
        return { plan_revision: 1, plan_hash, ...viewGraph(graph, req.query.collapse), change_seq: 0, as_of }
      },
    })

    app.get('/v1/procedures', {
      operationId: 'listProcedures',
      summary: 'List procedures',
      description: 'The newest version of every procedure of the loaded packs, with the schema of its parameters.',
      response: { 200: ProcedureList },
      preHandler: allow('operation:read', { kind: 'R' }),
      handler: async () => ({ items: newestProcedures(deps) }),
    })
  },
)

const newestProcedures = ({ library }: Uses<'library'>) => {
  const seen = new Set<string>()
  return library.packs.flatMap((pack) =>
    pack.procedures.flatMap(({ key, version, kind, title, scope, match, parameters, steps, gates }) => {
      const name = `${pack.pack}/${key}`
      if (seen.has(name)) return []
      seen.add(name)
      return [
        {
          pack: pack.pack,
          version,
          key,
          kind,
          title,
          scope,
          match,
          parameters,
          steps: steps.map((step) => ({ id: step.id, name: step.name, executor: step.executor })),
          gates,
        },
      ]
    }),
  )
}
