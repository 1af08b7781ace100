import type { FastifyReply, FastifyRequest } from 'fastify'
import { requireScope } from '../shared/auth/http.ts'
import { AffectedQuery, AffectedReply } from '../shared/contracts/catalog/affected.ts'
import {
  CapabilitiesCommand,
  CommandResult,
  HealthObservation,
  ResourceUpdateCommand,
} from '../shared/contracts/catalog/commands.ts'
import { ResourceParams } from '../shared/contracts/catalog/common.ts'
import {
  EventsPage,
  EventsQuery,
  Snapshot,
  SnapshotQuery,
  Versions,
  VersionsQuery,
} from '../shared/contracts/catalog/events.ts'
import { HealthCompared, HealthCompareQuery } from '../shared/contracts/catalog/health.ts'
import { BATCH_COMMANDS, BATCH_ITEMS, BatchApply, BatchReply } from '../shared/contracts/imports/batch.ts'
import { JSON_LIMITS } from '../shared/data/json.ts'
import { faultsIn, type Router, routes, sendStored, sendText } from '../shared/http/routes.ts'
import { type Asked, runChange } from './changes/run.ts'
import { recordDenied } from './command/audit.ts'
import type { CatalogDeps } from './deps.ts'
import { compareHealth } from './health/compare.ts'
import { readAffected } from './impact/affected.ts'
import { readEvents, readSnapshot, readVersions } from './resources/events.ts'
import { applyBatch, type CheckShape } from './results/batch.ts'
import { healthObservation, operationResult, providedCapabilities, type Sender } from './results/record.ts'

const BATCH_BYTES = 8 * 1_048_576

const senderOf = (req: FastifyRequest): Sender => ({
  service: req.service,
  route: `${req.method} ${req.routeOptions.url}`,
  request_id: req.id,
  path_id: (req.params as { resource_id: string }).resource_id,
})

/** Commands of the control plane, and the log that feeds the projections of other apps. */
export const internalRoutes = routes<CatalogDeps>('internal', (app, { deps }) => {
  commandRoutes(app, deps)
  batchRoute(app, deps)
  logRoutes(app, deps)
})

const commandRoutes = (app: Router, deps: CatalogDeps): void => {
  const command = { 'x-reply-headers': ['etag'] as const, params: ResourceParams, response: { 200: CommandResult } }

  const answer = async (reply: FastifyReply, asked: Asked) => sendStored(reply, await runChange(deps, asked))

  app.post('/internal/v1/resources/:resource_id/apply-operation-result', {
    operationId: 'applyOperationResult',
    ...command,
    summary: 'Apply the result of an operation',
    description:
      'ResourceUpdateCommand: refused if expected_version does not match; a repeat gets the first answer byte for byte. Example changes: {"observed_state_patch":{"release":"2.4.0"}}',
    body: ResourceUpdateCommand,
    preHandler: requireScope('results:apply'),
    handler: (req, reply) => answer(reply, operationResult(deps, req.body, senderOf(req))),
  })

  app.post('/internal/v1/resources/:resource_id/provided-capabilities', {
    operationId: 'reportCapabilities',
    ...command,
    summary: 'Report provided capabilities',
    description:
      'Reports the capabilities that the resource offers; mode replace withdraws unlisted ones. Example change: {"op":"add","capability_key":"compute.slots","version":"1.0.0","capacity":{"total":8}}',
    body: CapabilitiesCommand,
    preHandler: requireScope('capabilities:report'),
    handler: (req, reply) => answer(reply, providedCapabilities(deps, req.body, senderOf(req))),
  })

  app.post('/internal/v1/resources/:resource_id/health-observations', {
    operationId: 'recordHealthObservation',
    ...command,
    summary: 'Record a health observation',
    description:
      'Records the latest result of one check. A result older than the known one is answered with applied: false, superseded. The version never changes. A summary has at most 1 KiB, attributes have at most 8 KiB, and a resource has at most 200 checks.',
    body: HealthObservation,
    preHandler: requireScope('health:report'),
    handler: (req, reply) => answer(reply, healthObservation(deps, req.body, senderOf(req))),
  })
}

const batchRoute = (app: Router, deps: CatalogDeps): void =>
  app.post('/internal/v1/resources::batch-apply', {
    operationId: 'applyCommands',
    summary: 'Apply many commands',
    description:
      'Applies up to 500 commands, each with its own id and key and answered as if it had been sent alone; a repeat gets the first answers byte for byte. Each item needs its own scope. Not in the specification.',
    body: BatchApply,
    response: { 200: BatchReply },
    bodyLimit: BATCH_BYTES,
    config: { json_limits: { ...JSON_LIMITS, each: BATCH_ITEMS } },
    preHandler: requireScope('results:apply', 'capabilities:report', 'health:report'),
    handler: async (req, reply) => {
      const check: CheckShape = (kind, command) => faultsIn(req, BATCH_COMMANDS[kind], command)
      const { service, id: request_id, ends_at } = req
      const { body, denied } = await applyBatch(deps, req.body, { service, request_id, ends_at }, check)
      await recordDenied(deps, req, ...denied)
      return sendText(reply, body)
    },
  })

const logRoutes = (app: Router, deps: CatalogDeps): void => {
  app.get('/internal/v1/events', {
    operationId: 'listEvents',
    summary: 'Read the event log',
    description:
      'Returns numbered events after a pub_seq, or those of one aggregate after a version, for consumers that missed some. Not in the specification.',
    querystring: EventsQuery,
    response: { 200: EventsPage },
    preHandler: requireScope('catalog:read'),
    handler: (req) => readEvents(deps, req.query),
  })

  app.get('/internal/v1/snapshot', {
    operationId: 'getSnapshot',
    summary: 'Read all resources',
    description:
      'Returns documents and outgoing relationships in the order of ids, for the first fill of a projection. Not in the specification.',
    querystring: SnapshotQuery,
    response: { 200: Snapshot },
    preHandler: requireScope('catalog:read'),
    handler: (req) => readSnapshot(deps, req.query),
  })

  app.post('/internal/v1/resources::versions', {
    operationId: 'readVersions',
    summary: 'Read versions',
    description:
      'Returns the current versions of up to 5,000 resources, for callers that must check that they are up to date. Not in the specification.',
    body: VersionsQuery,
    response: { 200: Versions },
    preHandler: requireScope('catalog:read'),
    handler: (req) => readVersions(deps, req.body),
  })

  app.post('/internal/v1/resources::affected', {
    operationId: 'readAffected',
    summary: 'Read what depends on resources',
    description:
      'Returns the resources that would be affected if up to 1,000 resources failed together, transitively, counted by type and health. Not in the specification.',
    body: AffectedQuery,
    response: { 200: AffectedReply },
    preHandler: requireScope('catalog:read'),
    handler: (req) => readAffected(deps, req.body),
  })

  app.post('/internal/v1/health::compare', {
    operationId: 'compareHealth',
    summary: 'Compare the metrics of resources',
    description:
      'Returns the medians of the metrics that their types declare, since a change ended: for the changed resources, for the rest, and for the changed ones before. Not in the specification.',
    body: HealthCompareQuery,
    response: { 200: HealthCompared },
    preHandler: requireScope('catalog:read'),
    handler: (req) => compareHealth(deps, req.body),
  })
}
