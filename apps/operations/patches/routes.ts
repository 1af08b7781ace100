import { and, gt, inArray } from 'drizzle-orm'
import Type from 'typebox'
import { readAsOf } from '../../../db/operations/operations/read.ts'
import { listPatches } from '../../../db/operations/patches/rows.ts'
import { patches } from '../../../db/operations/tables/index.ts'
import { allow } from '../../shared/auth/http.ts'
import { DryRunReply, OperationParams } from '../../shared/contracts/operations/common.ts'
import {
  ApprovePatchBody,
  PatchDetail,
  PatchList,
  PatchListQuery,
  PatchParams,
  PatchReply,
  ProposeBody,
  RejectPatchBody,
} from '../../shared/contracts/operations/patches.ts'
import { ReadHeaders, type Router, routes, sendStored, VersionedHeaders } from '../../shared/http/routes.ts'
import { uuidv7 } from '../../shared/ids.ts'
import { commandOf } from '../command/command.ts'
import { unlessKnown } from '../command/reply.ts'
import { runCommand } from '../command/run.ts'
import type { CommandDeps, ReplanDeps, Uses } from '../deps.ts'
import { approvePatch } from './approve.ts'
import { rejectPatch } from './decide.ts'
import { proposeSteps } from './propose.ts'
import { readHead, readPatch, viewPatch } from './view.ts'

const read = allow('operation:read', { kind: 'R' })
const base = '/v1/operations/:operation_id/patches'

type Deps = CommandDeps & ReplanDeps & Uses<'lookback_s' | 'pages'>

/** Patches: changes to a running graph, proposed, read and decided. */
export const patchesRoutes = routes<Deps>('patches', (app, { deps }) => {
  readRoutes(app, deps)
  commandRoutes(app, deps)
})

const readRoutes = (app: Router, deps: Deps) => {
  app.get(base, {
    operationId: 'listPatches',
    summary: 'List patches of an operation',
    description:
      'Lists every patch in the order of proposal, with its changes, its votes and the actions that the caller may take.',
    params: OperationParams,
    querystring: PatchListQuery,
    response: { 200: PatchList },
    preHandler: read,
    handler: async (req) => {
      const { operation_id } = req.params
      const { page_size = 50, page_token, status } = req.query
      const { head, places } = await readHead(deps, req.caller, operation_id)
      const list = { route: 'patches', operation_id, status }
      const [after] = deps.pages.after(page_token, list) ?? []
      const where = and(status && inArray(patches.status, status), after ? gt(patches.patch_id, after) : undefined)
      const rows = await listPatches(deps.db, operation_id, where, page_size + 1)
      const page = deps.pages.cut(rows, page_size, list, ({ patch_id }) => [patch_id])
      const items = page.items.map((row) => viewPatch(deps, req.caller, head, places, row))
      return { ...page, items, as_of: await readAsOf(deps.db) }
    },
  })

  app.get(`${base}/:patch_id`, {
    operationId: 'getPatch',
    summary: 'Read a patch',
    description:
      'Returns its changes, the failures it mends, the nodes it holds, who must agree, and the votes. A vote must name its `digest`.',
    params: PatchParams,
    headers: ReadHeaders,
    'x-reply-headers': ['etag'],
    response: { 200: PatchDetail, 304: Type.Null() },
    preHandler: read,
    handler: async (req, reply) => {
      const { view, head } = await readPatch(deps, req.caller, req.params.operation_id, req.params.patch_id)
      return unlessKnown(req, reply, head, view)
    },
  })
}

const commandRoutes = (app: Router, deps: Deps) => {
  app.post(base, {
    operationId: 'proposePatch',
    summary: 'Propose a patch',
    description:
      'Proposes changes to nodes that have not begun. An unsound result is refused with every violation. The nodes it touches are held until it is decided.',
    params: OperationParams,
    headers: VersionedHeaders,
    'x-reply-headers': ['location'],
    body: ProposeBody,
    response: { 200: DryRunReply, 201: PatchReply, 202: PatchReply },
    preHandler: allow('patch:propose', { kind: 'W' }),
    handler: async (req, reply) => {
      const { reason, dry_run } = req.body
      const given = { kind: 'patch_proposed', class: 'edit', ...req.params, reason, dry_run } as const
      const patch_id = uuidv7()
      const command = { ...commandOf(deps, req, given), command_id: patch_id, patch_id, caller: req.caller }
      return sendStored(reply, await runCommand(deps, command, proposeSteps(deps, command, req.body)))
    },
  })

  app.post(`${base}/:patch_id/approve`, {
    operationId: 'approvePatch',
    summary: 'Approve a patch',
    description:
      'Votes for the digest that was reviewed. When the rule of every gate that the patch touches is met, the next revision of the graph is written at once.',
    params: PatchParams,
    headers: VersionedHeaders,
    'x-reply-headers': ['location'],
    body: ApprovePatchBody,
    response: { 200: Type.Union([PatchReply, DryRunReply]), 202: PatchReply },
    preHandler: allow('patch:decide', { kind: 'A' }),
    handler: async (req, reply) => {
      const { comment: reason = null, dry_run } = req.body
      const given = { kind: 'patch_applied', class: 'start', ...req.params, reason, dry_run } as const
      const command = { ...commandOf(deps, req, given), patch_id: req.params.patch_id, caller: req.caller }
      return sendStored(reply, await approvePatch(deps, command, req.body))
    },
  })

  app.post(`${base}/:patch_id/reject`, {
    operationId: 'rejectPatch',
    summary: 'Reject a patch',
    description: 'Releases the nodes that it held. If its proposer rejects it, the patch is withdrawn.',
    params: PatchParams,
    headers: VersionedHeaders,
    'x-reply-headers': ['location'],
    body: RejectPatchBody,
    response: { 200: Type.Union([PatchReply, DryRunReply]), 202: PatchReply },
    preHandler: allow(['patch:decide', 'patch:propose'], { kind: 'S' }),
    handler: async (req, reply) => {
      const { comment: reason, dry_run } = req.body
      const given = { kind: 'patch_closed', class: 'stop', ...req.params, reason, dry_run } as const
      const command = { ...commandOf(deps, req, given), patch_id: req.params.patch_id, caller: req.caller }
      return sendStored(reply, await rejectPatch(deps, command, req.body))
    },
  })
}
