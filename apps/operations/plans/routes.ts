import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import Type from 'typebox'
import { getPlanGraph } from '../../../db/operations/plans/rows.ts'
import { allow } from '../../shared/auth/http.ts'
import { DryRunReply } from '../../shared/contracts/operations/common.ts'
import { OperationGraph, OperationReply } from '../../shared/contracts/operations/operations.ts'
import {
  PlanGraphQuery,
  PlanParams,
  PlanQuery,
  PlanView,
  ProcedureList,
  StartBody,
} from '../../shared/contracts/operations/plans.ts'
import { digest } from '../../shared/data/digest.ts'
import { notFound } from '../../shared/errors.ts'
import { CommandHeaders, errorReplies, ReadHeaders, sendStored } from '../../shared/http/app.ts'
import { uuidv7 } from '../../shared/ids.ts'
import { commandOf, runCommand } from '../command/accept.ts'
import { unlessKnown } from '../command/reply.ts'
import type { OperationsDeps } from '../deps.ts'
import { startSteps } from '../operations/start.ts'
import { isMovedPin, markStale, readPlan, renderPlan } from './preview.ts'

/** Plans: what an intent would do, and the start of exactly that. */
export const plansRoutes: FastifyPluginAsyncTypebox<{ deps: OperationsDeps }> = async (app, { deps }) => {
  app.get(
    '/v1/plans/:plan_id',
    {
      schema: {
        summary: 'Read a plan',
        description:
          'What would change, how risky it is, who must agree, what is in the way, and what has moved since.',
        tags: ['plans'],
        params: PlanParams,
        querystring: PlanQuery,
        headers: ReadHeaders,
        'x-reply-headers': ['etag'],
        response: { 200: PlanView, 304: Type.Null(), ...errorReplies },
      },
      preHandler: allow('operation:read', { kind: 'R' }),
    },
    async (req, reply) => {
      const plan = await renderPlan(deps, deps.db, req.caller, req.params.plan_id, req.query.diff_after)
      // What has moved and what is in the way changes without the plan: its tag is of all that is shown.
      return unlessKnown(req, reply, `"${digest(plan).slice('sha256:'.length)}"`, plan)
    },
  )

  app.get(
    '/v1/plans/:plan_id/graph',
    {
      schema: {
        summary: 'Read the graph of a plan',
        description: 'Every node that would run, in rank order; equal plans give equal bytes.',
        tags: ['plans'],
        params: PlanParams,
        querystring: PlanGraphQuery,
        response: { 200: OperationGraph, ...errorReplies },
      },
      preHandler: allow('operation:read', { kind: 'R' }),
    },
    async (req) => {
      await readPlan(deps.db, req.caller, req.params.plan_id)
      const found = await getPlanGraph(deps.db, req.params.plan_id)
      if (!found) throw notFound('plan', req.params.plan_id)
      return pendingGraph(found, req.query.collapse ?? 'none')
    },
  )

  app.post(
    '/v1/plans/:plan_id/start',
    {
      schema: {
        summary: 'Start a plan',
        description:
          'Locks the plan and starts its operation. `reviewed_plan_hash` says which paper was read; another is 412. Of many callers one starts it, the others get 409 with the operation_id.',
        tags: ['plans'],
        params: PlanParams,
        headers: CommandHeaders,
        'x-reply-headers': ['location'],
        body: StartBody,
        response: {
          201: OperationReply,
          202: OperationReply,
          200: Type.Union([OperationReply, DryRunReply]),
          ...errorReplies,
        },
      },
      preHandler: allow('plan:start', { kind: 'A' }),
    },
    async (req, reply) => {
      const { plan_id } = req.params
      const { comment, dry_run } = req.body
      const command = commandOf(deps, req, {
        kind: 'start',
        class: 'start',
        operation_id: uuidv7(),
        reason: comment ?? null,
        dry_run,
      })
      try {
        return sendStored(reply, await runCommand(deps, command, startSteps(deps, command, plan_id, req.body)))
      } catch (error) {
        if (isMovedPin(error) && !dry_run) await markStale(deps, command, plan_id, error.message)
        throw error
      }
    },
  )

  app.get(
    '/v1/procedures',
    {
      schema: {
        summary: 'List procedures',
        description: 'The newest version of every procedure of the loaded packs, with the schema of its parameters.',
        tags: ['plans'],
        response: { 200: ProcedureList, ...errorReplies },
      },
      preHandler: allow('operation:read', { kind: 'R' }),
    },
    async () => ({ items: newestProcedures(deps) }),
  )
}

const newestProcedures = ({ library }: OperationsDeps) => {
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

type Drawn = NonNullable<Awaited<ReturnType<typeof getPlanGraph>>>
const COLLAPSE_ABOVE = 500

/** The drawing of what has not begun. */
const pendingGraph = ({ graph, plan_hash, created_at }: Drawn, collapse: 'auto' | 'none' | 'groups') => {
  const collapsed = collapse === 'groups' || (collapse === 'auto' && graph.nodes.length > COLLAPSE_ABOVE)
  const sizes = new Map<string, number>()
  for (const { group } of graph.nodes) if (group !== null) sizes.set(group, (sizes.get(group) ?? 0) + 1)
  return {
    plan_revision: 1,
    plan_hash,
    nodes: graph.nodes
      .filter(({ group }) => !collapsed || group === null)
      .map((node) => ({
        ...node,
        state: 'pending' as const,
        attempt: 0,
        generation: 1,
        held_by_patch: false,
        exception: null,
      })),
    groups: graph.groups.map((group) => ({ ...group, counts: { pending: sizes.get(group.group_id) ?? 0 } })),
    gates: graph.gates.map((gate) => ({ ...gate, state: 'armed' as const })),
    critical_path: graph.critical_path,
    change_seq: 0,
    as_of: created_at,
  }
}
