import type { Static } from 'typebox'
import { stringify } from 'yaml'
import type { RelationshipItem } from '../../shared/contracts/catalog/relationships.ts'
import type {
  Accepted,
  ResourceDocument,
  ResourceView,
  Validated,
  VersionItem,
} from '../../shared/contracts/catalog/resources.ts'
import type { Problem } from '../../shared/contracts/client/problem.ts'
import type { BulkDone, BulkOp, BulkReply } from '../../shared/contracts/imports/bulk.ts'
import { type Command, type Context, needed, readDocument, text, type Values, whole } from '../command.ts'
import { refused, usageError } from '../errors.ts'
import { withQuery } from '../session/api.ts'
import { confirm } from '../terminal/ask.ts'
import { minute, short, word, zoned } from '../terminal/output.ts'

const FILE = {
  file: { type: 'string', short: 'f', value: 'FILE', about: 'a file of YAML or JSON; - is stdin' },
} as const
const STATED = {
  version: { type: 'string', value: 'N', about: 'the version that the change is based on' },
  reason: { type: 'string', value: 'TEXT', about: 'why; recorded' },
} as const
type Version = Static<typeof VersionItem>
type Relation = Static<typeof RelationshipItem>

export const resourceCommands: Command[] = [
  {
    name: 'resource list',
    about: 'Lists resources; --filter takes the filter language of the API, --type one type.',
    examples: ['resource list --type fleet.host', 'resource list --filter health_status=unhealthy --watch'],
    options: {
      filter: { type: 'string', value: 'EXPR', about: 'the filter language of the API' },
      type: { type: 'string', about: 'one type only' },
      'owned-by': { type: 'string', value: 'RESOURCE', about: 'only resources of this team or person' },
    },
    run: async ({ api, out, all }, _, values) =>
      out.list(
        await api.list<ResourceView>(
          '/api/v1/resources',
          { filter: text(values, 'filter'), type_key: text(values, 'type'), owned_by: text(values, 'owned-by') },
          all,
        ),
        'resource_id',
        [
          ['id', ({ resource_id }) => resource_id],
          ['type', ({ type_key }) => type_key],
          ['lifecycle', ({ lifecycle_status }) => lifecycle_status],
          ['health', ({ health_status }) => word(health_status)],
          ['version', ({ version }) => version],
          ['drift', ({ drift }) => drift.status],
        ],
      ),
  },
  {
    name: 'resource show',
    takes: 'RESOURCE',
    about: 'Shows one resource with its desired and observed state.',
    examples: ['resource show eu1-web-01'],
    run: async ({ api, out }, [id = '']) => {
      const resource = await api.get<ResourceDocument>(`/api/v1/resources/${encodeURIComponent(id)}`)
      out.one(resource, 'resource_id', (body) => stringify(body).trimEnd().split('\n'))
    },
  },
  {
    name: 'resource create',
    about: 'Creates a resource from a file of YAML or JSON; - is stdin.',
    examples: ['resource create -f host.yaml'],
    options: FILE,
    run: async (context, _, values) => {
      const path = tried(context, '/api/v1/resources')
      tell(context, await context.api.post<Written>(path, readDocument(needed(values, 'file'))))
    },
  },
  {
    name: 'resource update',
    takes: 'RESOURCE',
    about: 'Changes a resource by a merge patch from a file, based on the current version or on --version.',
    examples: [
      'resource update eu1-web-01 -f change.yaml --version 3',
      "resource update eu1-web-01 -f change.yaml --force --reason 'the importer is behind'",
    ],
    options: {
      ...FILE,
      ...STATED,
      force: { type: 'boolean', about: 'take over fields that others manage; needs --reason' },
    },
    run: async (context, [id = ''], values) => {
      const { api } = context
      const path = `/api/v1/resources/${encodeURIComponent(id)}`
      const force = values.force === true
      const reason = force ? needed(values, 'reason') : text(values, 'reason')
      const patch = readDocument(needed(values, 'file'))
      const version = versionIn(context, values) ?? (await api.get<ResourceView>(path)).version
      const how = { force: String(force), reason, validate_only: context.dry_run ? 'true' : undefined }
      const headers = { 'content-type': 'application/merge-patch+json', 'if-match': `"${version}"` }
      const { body } = await api.send<Written>('PATCH', withQuery(path, how), patch, headers, atVersion(version))
      tell(context, body)
    },
  },
  {
    name: 'resource relate',
    takes: 'RESOURCE RELATION TARGET',
    about: 'Relates a resource to another, or ends the relation with --remove.',
    examples: ['resource relate eu1-api depends_on eu1-db', 'resource relate eu1-api depends_on eu1-db --remove'],
    options: { remove: { type: 'boolean', about: 'end the relation' }, ...STATED },
    run: (context, [id = '', type_key = '', target_id = ''], values) => {
      const op = values.remove === true ? 'remove' : 'add'
      return state(context, 'relate', id, values, () => ({ relationship_changes: [{ op, type_key, target_id }] }))
    },
  },
  {
    name: 'resource move',
    takes: 'RESOURCE CONTAINER',
    about: 'Moves a resource, with everything in it, into another container.',
    examples: ['resource move eu1-api eu1-b-web'],
    options: STATED,
    run: (context, [id = '', container = ''], values) =>
      state(context, 'relate', id, values, ({ parent_id }) => ({
        relationship_changes: [
          ...(parent_id === null || parent_id === container ? [] : [into('remove', parent_id)]),
          into('add', container),
        ],
      })),
  },
  {
    name: 'resource retire',
    takes: 'RESOURCE',
    about: 'Records that a resource no longer exists. Its relations end; its history stays.',
    examples: ['resource retire eu1-api --reason "replaced by eu1-api-2"'],
    options: STATED,
    run: async (context, [id = ''], values) => {
      if (!context.yes && !context.dry_run) await confirm(`Retire ${id} for good?`)
      await state(context, 'retire', id, values, () => ({}))
    },
  },
  {
    name: 'resource history',
    takes: 'RESOURCE',
    about: 'Lists the versions of a resource: when, by whom, what.',
    examples: ['resource history eu1-web-01'],
    run: async ({ api, out, all }, [id = '']) =>
      out.list(
        await api.list<Version>(`/api/v1/resources/${encodeURIComponent(id)}/versions`, {}, all),
        ({ version }) => String(version),
        [
          ['version', ({ version }) => version],
          [zoned('when'), ({ at }) => minute(at)],
          ['by', ({ actor_name }) => actor_name],
          ['operation', ({ operation_id }) => (operation_id ? short(operation_id) : '')],
          ['changed', ({ version, changed_paths }) => (version === 1 ? 'created' : changed_paths.join(' '))],
        ],
      ),
  },
  {
    name: 'resource relations',
    takes: 'RESOURCE',
    about: 'Lists the relationships of a resource; --type one type of them.',
    examples: ['resource relations eu1-web-01', 'resource relations eu1-web-01 --type contained_in'],
    options: { type: { type: 'string', about: 'one type only' } },
    run: async ({ api, out, all }, [id = ''], values) =>
      out.list(
        await api.list<Relation>(
          `/api/v1/resources/${encodeURIComponent(id)}/relationships`,
          { relationship_types: text(values, 'type') },
          all,
        ),
        ({ peer }) => peer.resource_id,
        [
          [
            'relation',
            ({ relationship, direction }) => `${direction === 'in' ? '<- ' : '-> '}${relationship.type_key}`,
          ],
          ['resource', ({ peer }) => peer.resource_id],
          ['type', ({ peer }) => peer.type_key],
          ['lifecycle', ({ peer }) => peer.lifecycle_status],
          ['health', ({ peer }) => word(peer.health_status)],
          [zoned('since'), ({ relationship }) => minute(relationship.valid_from)],
        ],
      ),
  },
]

const into = (op: 'add' | 'remove', target_id: string) => ({ op, type_key: 'contained_in', target_id })

/** The version that --version names. A repeat must name it, because the lost command may have made the next one. */
const versionIn = ({ idempotency_key }: Context, values: Values): number | undefined => {
  const version = text(values, 'version')
  if (version !== undefined) return whole(version, 'version')
  if (idempotency_key !== undefined)
    throw usageError('--version is missing: with --idempotency-key, name the version that the change is based on.')
}
const atVersion = (version: number): string => ` --version ${version}`

/** States a fact about one resource, at the version that --version names or that it has now. */
const state = async (
  context: Context,
  op: BulkOp,
  id: string,
  values: Values,
  changeOf: (resource: ResourceView) => object,
): Promise<void> => {
  const { api, out, dry_run } = context
  const at_version = versionIn(context, values)?.toString()
  const resource = await api.get<ResourceView>(withQuery(`/api/v1/resources/${encodeURIComponent(id)}`, { at_version }))
  const expected_version = resource.version
  const change = { resource_id: resource.resource_id, expected_version, ...changeOf(resource) }
  const how = { mode: 'record_only', reason: text(values, 'reason'), validate_only: dry_run ? 'true' : undefined }
  const path = withQuery('/api/v1/resources:bulk', how)
  const again = atVersion(expected_version)
  const { body } = await api.send<Static<typeof BulkReply>>('POST', path, { items: [{ op, change }] }, {}, again)
  const [made] = body.results
  if (!made || made.status >= 300) throw refused(made?.body as unknown as Problem, undefined)
  const done = made.body as BulkDone
  out.one(done, 'resource_id', () => [
    `${dry_run ? 'Would be: ' : ''}${done.resource_id}   version ${done.version}${done.applied ? '' : ', no change'}`,
  ])
}

/** The current resource; with the intent that its change became; or the resource as it would be. */
type Written = ResourceDocument | Static<typeof Accepted> | Static<typeof Validated>

const tried = ({ dry_run }: Context, path: string): string => (dry_run ? `${path}?validate_only=true` : path)

const tell = ({ out }: Context, written: Written): void => {
  const { resource_id, version } = 'resource' in written ? written.resource : written
  out.one({ resource_id, ...written }, 'resource_id', () => {
    if ('operation_ref' in written)
      return [
        `The change of ${resource_id} is intent ${written.operation_ref.intent_id}; it is waiting for its plan.`,
        `Next: signalbox plan preview ${short(written.operation_ref.intent_id)}`,
      ]
    if (!('would_create_intent' in written)) return [`${resource_id}   version ${version}`]
    const paths = written.changed_paths.join(', ') || 'no change'
    return [`Would be: ${resource_id}   ${paths}${written.would_create_intent ? ', by an intent' : ''}`]
  })
}
