import type { FastifyRequest } from 'fastify'
import Type from 'typebox'
import { allow, permissionMissing } from '../../shared/auth/http.ts'
import { closed, PageQuery, ResourceParams } from '../../shared/contracts/catalog/common.ts'
import {
  Accepted,
  PATCH_OPERATIONS,
  ResourceCreate,
  ResourceList,
  ResourceListQuery,
  ResourcePatch,
  ResourceView,
  Selection,
  Validated,
  VersionList,
  WriteQuery,
} from '../../shared/contracts/catalog/resources.ts'
import { OptionalText } from '../../shared/contracts/shapes.ts'
import { JSON_LIMITS } from '../../shared/data/json.ts'
import { AppError, wrongAt } from '../../shared/errors.ts'
import {
  CommandHeaders,
  isKnown,
  ReadHeaders,
  routes,
  sendPart,
  sendStored,
  sendUnchanged,
  VersionedHeaders,
} from '../../shared/http/routes.ts'
import { auditDenied, recordDenied } from '../command/audit.ts'
import { writeOf } from '../command/request.ts'
import type { CatalogDeps } from '../deps.ts'
import { pickFields } from '../document/fields.ts'
import { fieldsOf, listPage } from '../read/lists.ts'
import type { Side } from '../read/sides.ts'
import { createResource } from './create.ts'
import { namingManagers } from './managers.ts'
import { listPast } from './past.ts'
import { type PatchBody, patchResource } from './patch.ts'
import { readResource, readVersions } from './read.ts'

const ResourceQuery = Type.Object(
  {
    ...Selection,
    at: OptionalText({ format: 'date-time', maxLength: 40, description: 'The resource as it was at this time.' }),
    at_version: Type.Optional(Type.Integer({ minimum: 1, description: 'The resource as it was at this version.' })),
  },
  closed,
)
const VersionsQuery = Type.Object(PageQuery, closed)
/** The key is checked after the shape, because validate_only needs none. */
const CreateHeaders = Type.Partial(CommandHeaders)
const { expected_version: _version, ...createQuery } = WriteQuery.properties
const CreateQuery = Type.Object(createQuery, closed)
const PatchHeaders = Type.Partial(
  Type.Object({
    ...VersionedHeaders.properties,
    'if-match': Type.String({
      maxLength: 512,
      description:
        'The ETag that was read, or a list of them: refused (412) if the version is none of these. `*` names no version (428). `W/` before a tag is ignored: a proxy may have added it.',
    }),
  }),
)

/** Resource reads; the same on both listeners. */
export const resourceReads = routes<CatalogDeps, { side: Side }>('catalog', (app, { deps, side }) => {
  app.get(side.path('/v1/resources'), {
    operationId: 'listResources',
    summary: 'List resources',
    description:
      'Lists resources by place, type, state, labels or a filter, in keyset pages: under sort keys that never change, a row that exists throughout is returned exactly once. Example: ?type_key=infra.host&region_id=eu1&filter=labels.env=prod',
    querystring: ResourceListQuery,
    response: { 200: ResourceList },
    preHandler: side.guard(),
    handler: async (req, reply) => {
      const { at, ...query } = req.query
      const reader = side.reader(req)
      if (at !== undefined) {
        const { selected, ...page } = await listPast(deps, { ...query, at }, reader)
        return selected ? sendPart(reply, page) : page
      }
      const { rows, selected, ...page } = await listPage(deps, 'resources', query, reader)
      return selected ? sendPart(reply, page) : page
    },
  })

  app.get(side.path('/v1/resources/:resource_id'), {
    operationId: 'getResource',
    summary: 'Read a resource',
    description:
      'Returns one resource, never stale, with the ETag for If-Match. at and at_version return an earlier state. With fields the reply contains only those fields. Example: ?fields=name,desired_state.release',
    params: ResourceParams,
    headers: ReadHeaders,
    querystring: ResourceQuery,
    'x-reply-headers': ['etag'],
    'x-errors': [410],
    response: { 200: ResourceView, 304: Type.Null() },
    preHandler: side.guard(),
    handler: async (req, reply) => {
      const { resource_id } = req.params
      const { view, etag } = await readResource(deps, resource_id, req.query, side.reader(req))
      if (etag !== undefined) reply.header('etag', etag)
      // The x of a first expired check does not tell of a second one that expires before the sweep.
      if (etag !== undefined && !etag.endsWith('x"') && isKnown(req, etag)) return sendUnchanged(reply)
      const fields = fieldsOf(req.query.fields)
      return fields ? sendPart(reply, pickFields(view, fields) as typeof view) : view
    },
  })

  app.get(side.path('/v1/resources/:resource_id/versions'), {
    operationId: 'listResourceVersions',
    summary: 'List the versions of a resource',
    description:
      'Lists who changed which fields and when, by which command and operation, with which evidence, newest first. Not in the specification.',
    params: ResourceParams,
    querystring: VersionsQuery,
    response: { 200: VersionList },
    preHandler: side.guard(),
    handler: (req) => readVersions(deps, req.params.resource_id, req.query, side.reader(req)),
  })
})

const MERGE_PATCH = 'application/merge-patch+json'
const JSON_PATCH = 'application/json-patch+json'

/** Resource writes by people. */
export const resourceWrites = routes<CatalogDeps>('catalog', (app, { deps }) => {
  const guard = allow(['catalog:write', 'catalog:record'], { kind: 'W' })

  app.post('/v1/resources', {
    operationId: 'createResource',
    summary: 'Create a resource',
    description:
      'Writes record types, and facts with mode=record_only, at once (201). For other types it creates a planned resource and an intent (202). Example body: {"type_key":"topology.region","name":"eu1","desired_state":{"code":"eu1"}}',
    headers: CreateHeaders,
    'x-reply-headers': ['etag', 'location'],
    querystring: CreateQuery,
    body: ResourceCreate,
    response: { 200: Validated, 201: ResourceView, 202: Accepted },
    onRequest: [exactType('application/json'), needRecordPermission(deps)],
    preHandler: guard,
    handler: async (req, reply) => {
      const write = writeOf(req, { query: req.query, body: req.body })
      return sendStored(reply, await auditDenied(deps, req, createResource(deps, req.body, write)))
    },
  })

  app.patch('/v1/resources/:resource_id', {
    operationId: 'updateResource',
    summary: 'Change a resource',
    description:
      'Applies a merge patch (RFC 7396) or JSON patch (RFC 6902) to display_name, labels, annotations, owner and desired_state, based on one version (If-Match or expected_version). desired_state of an operation type becomes an intent (202). A state has at most 256 KiB and 20 levels, and each string at most 65,536 characters as spelled in JSON. Example body: {"labels":{"env":"prod"},"expected_version":3}',
    params: ResourceParams,
    headers: PatchHeaders,
    'x-reply-headers': ['etag', 'location'],
    'x-errors': [428],
    querystring: WriteQuery,
    body: ResourcePatch,
    consumes: [MERGE_PATCH, JSON_PATCH],
    response: { 200: Type.Union([ResourceView, Validated]), 202: Accepted },
    config: { json_limits: { ...JSON_LIMITS, each: PATCH_OPERATIONS, bare: true } },
    onRequest: [exactType(MERGE_PATCH, JSON_PATCH), needRecordPermission(deps)],
    preHandler: guard,
    handler: async (req, reply) => {
      const { params, query, body } = req
      refuseOtherShape(req, body)
      const if_match = req.headers['if-match']
      const write = writeOf(req, { params, query, if_match: if_match ?? null, body })
      const done = patchResource(deps, params.resource_id, body as PatchBody, if_match, write)
      return sendStored(reply, await namingManagers(deps, params.resource_id, auditDenied(deps, req, done)))
    },
  })
})

/** 415 for any other content type: the shared parser accepts all JSON types. */
const exactType =
  (...types: string[]) =>
  async (req: FastifyRequest): Promise<void> => {
    const given = req.headers['content-type']?.split(';')[0]?.trim().toLowerCase()
    if (given !== undefined && types.includes(given)) return
    throw new AppError(
      'validation_error',
      'media_type',
      `The content type ${JSON.stringify(given ?? '')} is not accepted here.`,
      { hint: `Send ${types.join(' or ')}.` },
    )
  }

/** Refuses mode=record_only before the body is read. */
export const needRecordPermission =
  (deps: CatalogDeps) =>
  async (req: FastifyRequest): Promise<void> => {
    const { mode } = req.query as { mode?: unknown }
    if (mode !== 'record_only' || req.caller.permissions.has('catalog:record')) return
    const error = permissionMissing(['catalog:record'])
    await recordDenied(deps, req, error)
    throw error
  }

const refuseOtherShape = (req: FastifyRequest, body: unknown): void => {
  const wants_list = req.headers['content-type']?.toLowerCase().startsWith(JSON_PATCH) ?? false
  if (Array.isArray(body) === wants_list) return
  const message = wants_list ? 'must be a list of operations' : 'must be an object'
  throw wrongAt('', message, { detail: `The body ${message} for this content type.`, as: 'type' })
}
