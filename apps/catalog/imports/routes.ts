import type { FastifyRequest } from 'fastify'
import Type from 'typebox'
import { refuseMachine } from '../../shared/auth/caller.ts'
import { allow } from '../../shared/auth/http.ts'
import { closed } from '../../shared/contracts/catalog/common.ts'
import {
  IMPORT_ITEMS,
  ImportBody,
  ImportItem,
  ImportJob,
  ImportJobBody,
  ImportJobRequest,
  ImportQuery,
  ImportReply,
  ImportRequest,
  ImportResults,
  JOB_ITEMS,
} from '../../shared/contracts/imports/imports.ts'
import { JSON_LIMITS } from '../../shared/data/json.ts'
import { AppError } from '../../shared/errors.ts'
import { CommandHeaders, faultsIn, type Router, routes, sendStored } from '../../shared/http/routes.ts'
import { auditDenied, recordDenied } from '../command/audit.ts'
import { writeOf } from '../command/request.ts'
import type { CatalogDeps } from '../deps.ts'
import { readJob, readResults, startJob, stopJob } from './jobs.ts'
import type { CheckItem } from './results.ts'
import { importItems } from './run.ts'

const JobParams = Type.Object({ job_id: Type.String({ format: 'uuid' }) }, closed)
const ResultsQuery = Type.Object({ page_token: Type.Optional(Type.String({ maxLength: 4000 })) }, closed)
const JobQuery = Type.Object({ reason: Type.Optional(Type.String({ maxLength: 2000 })) }, closed)

/** Imports from other systems. */
export const importsRoutes = routes<CatalogDeps>('catalog', (app, { deps }) => {
  jobRoutes(app, deps)
  app.post('/v1/resources::import', {
    operationId: 'importResources',
    summary: 'Import resources',
    description:
      'Creates, updates or keeps up to 200 items of one source by their id in the source, and returns the differences. validate_only stores no change. Items are never retired. An item that is refused, also for its form, keeps none of the others from being imported. Items that do not fit into the time of the request are deferred: send them in another request. Not in the specification.',
    headers: Type.Partial(CommandHeaders),
    querystring: ImportQuery,
    body: ImportBody,
    'x-body': ImportRequest,
    response: { 200: ImportReply },
    config: { json_limits: { ...JSON_LIMITS, each: IMPORT_ITEMS } },
    preHandler: allow('catalog:record', { kind: 'W' }),
    handler: async (req, reply) => {
      const write = writeOf(req, { query: req.query, body: req.body })
      const { answer, denied } = await auditDenied(deps, req, importItems(deps, req.body, write, checkOf(req)))
      await recordDenied(deps, req, ...denied)
      return sendStored(reply, answer)
    },
  })
})

const checkOf =
  (req: FastifyRequest): CheckItem =>
  (item) =>
    faultsIn(req, ImportItem, item)

const noJobs = () =>
  new AppError('policy_denied', 'person_required', 'Only a person can start an import that runs in the background.', {
    hint: 'A machine sends its items to POST /v1/resources:import, up to 200 at a time.',
  })

const jobRoutes = (app: Router, deps: CatalogDeps): void => {
  app.post('/v1/imports', {
    operationId: 'startImport',
    summary: 'Start an import',
    description:
      'Imports up to 1,000 items of one source in the background, in small transactions, with the rights that the caller holds at that time. Machines use importResources instead. A restart of the catalog neither loses nor repeats an item. Not in the specification.',
    headers: CommandHeaders,
    'x-reply-headers': ['location'],
    querystring: JobQuery,
    body: ImportJobBody,
    'x-body': ImportJobRequest,
    response: { 202: ImportJob },
    config: { json_limits: { ...JSON_LIMITS, each: JOB_ITEMS } },
    preHandler: allow('catalog:record', { kind: 'W' }),
    handler: async (req, reply) => {
      // A job runs with the rights of its account. A credential's rights may be fewer, and only its token states them.
      if (refuseMachine(req.caller)) throw noJobs()
      const write = writeOf(req, { query: req.query, body: req.body })
      return sendStored(reply, await auditDenied(deps, req, startJob(deps, req.body, write, checkOf(req))))
    },
  })

  app.get('/v1/imports/:job_id', {
    operationId: 'getImport',
    summary: 'Read an import',
    description:
      "Returns the progress of one of the caller's imports, with counts of its results. Not in the specification.",
    params: JobParams,
    response: { 200: ImportJob },
    preHandler: allow('catalog:record', { kind: 'R' }),
    handler: (req) => readJob(deps, req.params.job_id, req.caller.user_id),
  })

  app.get('/v1/imports/:job_id/results', {
    operationId: 'listImportResults',
    summary: 'List the results of an import',
    description: 'Lists the result of each item so far, in the order of the items. Not in the specification.',
    params: JobParams,
    querystring: ResultsQuery,
    response: { 200: ImportResults },
    preHandler: allow('catalog:record', { kind: 'R' }),
    handler: (req) => readResults(deps, req.params.job_id, req.caller.user_id, req.query.page_token),
  })

  app.post('/v1/imports/:job_id/cancel', {
    operationId: 'cancelImport',
    summary: 'Cancel an import',
    description: 'Stops an import; items that were imported stay. Not in the specification.',
    params: JobParams,
    headers: CommandHeaders,
    response: { 200: ImportJob },
    preHandler: allow('catalog:record', { kind: 'W' }),
    handler: async (req, reply) => {
      const write = writeOf(req, { params: req.params })
      return sendStored(reply, await auditDenied(deps, req, stopJob(deps, req.params.job_id, write)))
    },
  })
}
