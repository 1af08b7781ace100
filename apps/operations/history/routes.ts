import Type from 'typebox'
import { SNAPSHOT } from '../../../db/client.ts'
import { getCommand } from '../../../db/operations/commands/rows.ts'
import { getHeads, listEvidence, listTimeline } from '../../../db/operations/history/timeline.ts'
import { getArtifact, listArtifacts } from '../../../db/operations/nodes/rows.ts'
import { readAsOf } from '../../../db/operations/operations/read.ts'
import { allow } from '../../shared/auth/http.ts'
import { CommandReply, OperationId, OperationParams } from '../../shared/contracts/operations/common.ts'
import { ArtifactList, ArtifactQuery } from '../../shared/contracts/operations/nodes.ts'
import {
  Evidence,
  EvidenceKeys,
  EvidenceQuery,
  Timeline,
  TimelineQuery,
} from '../../shared/contracts/operations/operations.ts'
import { pluck } from '../../shared/data/pick.ts'
import { AppError, notFound } from '../../shared/errors.ts'
import { type Router, routes } from '../../shared/http/routes.ts'
import { lookUntil } from '../command/reply.ts'
import type { Uses } from '../deps.ts'
import { requireVisible } from '../operations/read.ts'
import { withoutHidden } from '../plans/leases.ts'
import { evidenceKeys, exportOf } from './evidence.ts'

const read = allow('operation:read', { kind: 'R' })

/** The history of operations: timeline, evidence, artifacts, and the outcome of commands. */
export const historyRoutes = routes<Uses<'artifacts' | 'clock' | 'db' | 'keys' | 'pages' | 'trust'>>(
  'history',
  (app, { deps }) => {
    getTimelineRoute(app, deps)
    getEvidenceRoute(app, deps)
    listEvidenceKeysRoute(app, deps)
    listArtifactsRoute(app, deps)
    downloadArtifactRoute(app, deps)
    getCommandRoute(app, deps)
  },
)

const getTimelineRoute = (app: Router, deps: Uses<'db'>) =>
  app.get('/v1/operations/:operation_id/timeline', {
    operationId: 'getTimeline',
    summary: 'Read the timeline',
    description: 'Events in order of their dense seq. With wait_ms the answer waits for the next one.',
    params: OperationParams,
    querystring: TimelineQuery,
    response: { 200: Timeline },
    preHandler: read,
    config: { waits: true },
    handler: async (req, reply) => {
      const { operation_id } = req.params
      const { after_seq = 0, limit = 200, wait_ms = 0, ...filter } = req.query
      await requireVisible(deps, req.caller, operation_id)
      let last_seq = after_seq
      // Reads events only if there are new ones: a filter that matches none would examine all others at each look.
      const look = async () => {
        const seen = last_seq
        const { timeline_seq = 0 } = (await getHeads(deps.db, operation_id)) ?? {}
        last_seq = timeline_seq
        return timeline_seq > seen
          ? listTimeline(deps.db, operation_id, { after_seq: Math.max(seen, after_seq), limit, ...filter })
          : []
      }
      const events = await lookUntil(reply, look, (found) => found.length > 0, wait_ms)
      const shown = await withoutHidden(deps.db, req.caller, pluck(events, 'data'))
      return {
        events: events.map((event, at) => ({ ...event, data: shown[at] ?? {} })),
        last_seq: Math.max(last_seq, events.at(-1)?.seq ?? 0),
      }
    },
  })

const getEvidenceRoute = (app: Router, deps: Uses<'clock' | 'db' | 'keys' | 'trust'>) =>
  app.get('/v1/operations/:operation_id/evidence', {
    operationId: 'getEvidence',
    summary: 'Read the evidence',
    description:
      'The hash chain of the operation: each record names the hash before it; the first, the plan hash. With format=jsonl the whole chain as a signed file that `signalbox evidence verify` checks offline.',
    params: OperationParams,
    querystring: EvidenceQuery,
    'x-text-types': ['application/jsonl'],
    response: { 200: Evidence },
    preHandler: read,
    handler: async (req, reply) => {
      const { operation_id } = req.params
      const { after_seq = 0, limit = 200, format } = req.query
      const { requester_id } = await requireVisible(deps, req.caller, operation_id)
      if (format === 'jsonl') {
        const file = await exportOf(
          deps,
          { caller: req.caller, request_id: String(req.id) },
          { operation_id, requester_id },
        )
        return reply
          .headers({
            'content-type': 'application/jsonl',
            'content-disposition': `attachment; filename="evidence-${operation_id}.jsonl"`,
            'cache-control': 'private, no-store',
          })
          .send(file as never)
      }
      return deps.db.transaction(async (tx) => {
        const records = await listEvidence(tx, operation_id, after_seq, limit)
        const heads = await getHeads(tx, operation_id)
        return { records, head: heads?.evidence ?? { seq: 0, hash: '' } }
      }, SNAPSHOT)
    },
  })

const listEvidenceKeysRoute = (app: Router, deps: Uses<'trust'>) =>
  app.get('/v1/evidence/keys', {
    operationId: 'listEvidenceKeys',
    summary: 'Read the keys of evidence',
    description:
      'Returns the public keys that verify exported evidence, as a JWKS. Store them separately from the files.',
    response: { 200: EvidenceKeys },
    preHandler: read,
    handler: async () => evidenceKeys(deps),
  })

const listArtifactsRoute = (app: Router, deps: Uses<'db' | 'pages'>) =>
  app.get('/v1/operations/:operation_id/artifacts', {
    operationId: 'listArtifacts',
    summary: 'List artifacts',
    description: 'Lists the artifacts of nodes with their digests. Their bytes are downloaded separately.',
    params: OperationParams,
    querystring: ArtifactQuery,
    response: { 200: ArtifactList },
    preHandler: read,
    handler: async (req) => {
      const { operation_id } = req.params
      const { page_size = 50, page_token, ...filter } = req.query
      await requireVisible(deps, req.caller, operation_id)
      const list = { route: 'artifacts', operation_id, ...filter }
      const after = deps.pages.after(page_token, list)
      const rows = await listArtifacts(deps.db, operation_id, { ...filter, after, limit: page_size + 1 })
      const as_of = await readAsOf(deps.db)
      return { ...deps.pages.cut(rows, page_size, list, ({ artifact_id }) => [artifact_id]), as_of }
    },
  })

const downloadArtifactRoute = (app: Router, deps: Uses<'artifacts' | 'db'>) =>
  app.get('/v1/operations/:operation_id/artifacts/:artifact_id/content', {
    operationId: 'downloadArtifact',
    summary: 'Download an artifact',
    description: 'Returns the bytes as an attachment; their digest is the sha256 in the list.',
    params: Type.Object({ operation_id: OperationId, artifact_id: Type.String({ format: 'uuid' }) }),
    produces: ['application/octet-stream'],
    'x-errors': [410],
    response: { 200: Type.Unknown() },
    preHandler: read,
    config: { endless: true },
    handler: async (req, reply) => {
      const { operation_id, artifact_id } = req.params
      await requireVisible(deps, req.caller, operation_id)
      const artifact = await getArtifact(deps.db, operation_id, artifact_id)
      if (!artifact) throw notFound('artifact', artifact_id)
      if (artifact.status === 'pending')
        throw new AppError('not_found', 'artifact', 'Its bytes have not been uploaded yet.')
      if (artifact.status === 'external')
        throw new AppError('not_found', 'artifact', 'It is kept elsewhere.', { extra: { uri: artifact.uri } })
      const content = artifact.content ?? (await deps.artifacts.read(artifact.sha256, artifact.size))
      if (!content) throw new AppError('not_found', 'gone', 'The content of this artifact is no longer stored.')
      return reply
        .headers({
          'content-type': 'application/octet-stream',
          'content-disposition': `attachment; filename="${artifact_id}"; filename*=UTF-8''${encodeURIComponent(artifact.name)}`,
          'x-content-type-options': 'nosniff',
          'content-security-policy': 'sandbox',
          'cache-control': 'private, no-store',
        })
        .send(content)
    },
  })

const getCommandRoute = (app: Router, deps: Uses<'db'>) =>
  app.get('/v1/operations/:operation_id/commands/:command_id', {
    operationId: 'getCommand',
    summary: 'Read the outcome of a command',
    description:
      'Returns the outcome of a command that was answered with 202: accepted until it is known, then applied, refused or withdrawn.',
    params: Type.Object({ operation_id: OperationId, command_id: Type.String({ format: 'uuid' }) }),
    response: { 200: CommandReply },
    preHandler: read,
    handler: async (req) => {
      const { operation_id, command_id } = req.params
      await requireVisible(deps, req.caller, operation_id)
      const row = await getCommand(deps.db, command_id)
      if (row?.operation_id !== operation_id) throw notFound('command', command_id)
      const { category = null, code = null, detail = null } = row.outcome ?? {}
      return { command: row.command, outcome: row.outcome && { category, code, detail } }
    },
  })
