import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useId, useMemo } from 'react'
import type { AuditRow } from '../api/types.ts'
import { Field } from '../forms/field.tsx'
import { SearchField } from '../forms/search.tsx'
import { shown } from '../kit/format.ts'
import {
  type AuditFind,
  actionWords,
  auditQuery,
  detailsOf,
  isOfUsers,
  nameIn,
  namesOfQuery,
  namesQuery,
  personOf,
  readAudit,
  readable,
  SOURCES,
  type Source,
  typedOf,
  unnamedIn,
} from '../queries/audit.ts'
import { rowsOf } from '../queries/pages.ts'
import { Export, type Fields } from '../ui/export.tsx'
import { Heading, Page } from '../ui/page.tsx'
import { type Column, ListTable } from '../ui/table.tsx'
import { Tabs } from '../ui/tabs.tsx'
import { GateLink, NodeLink, OperationLink, PatchLink, ResourceLink } from '../values/links.tsx'
import { TimeText } from '../values/time.tsx'
import { tAudit } from '../words/audit.ts'
import { quoted } from '../words/frame/language.ts'
import { t } from '../words/index.ts'

const NOBODY: Names = new Map()
const NOTHING: AuditFind = { actor: '', action: '', object: '', from: '', to: '' }

/** Who did what: the logs of operations, catalog, users and sign-ins, with filters and an export. */
export const AuditPage = () => {
  const { source, ...find } = useSearch({ from: '/shell/audit' })
  const navigate = useNavigate({ from: '/audit' })
  const { named, reading } = usePeople(find.actor)
  const about = usePeople(isOfUsers(source) ? find.object : '')
  const asked = { ...find, actor: personOf(find.actor, named), object: personOf(find.object, about.named) }
  const list = useInfiniteQuery({ ...auditQuery(source, asked), enabled: !reading && !about.reading })
  const rows = rowsOf(list)
  const names = useNames(rows, named)
  const filtered = Object.values(find).some((value) => value !== '')
  const set =
    (name: keyof AuditFind) =>
    (value: string, replace = false) =>
      void navigate({ search: (before) => ({ ...before, [name]: value }), replace })
  const clear = (
    <Link to="/audit" search={{ source, ...NOTHING }} className="button quiet">
      {tAudit.audit.clear}
    </Link>
  )
  return (
    <Page>
      <Heading title={tAudit.audit.title}>{tAudit.audit.title}</Heading>
      <p className="max-w-text text-muted">{tAudit.audit.intro}</p>
      <Tabs label={tAudit.audit.sources_label}>
        {SOURCES.map((choice) => (
          <Link
            key={choice}
            to="/audit"
            search={{ source: choice, ...NOTHING, from: find.from, to: find.to }}
            activeOptions={{ includeSearch: true }}
            aria-current={choice === source ? 'page' : undefined}
          >
            {tAudit.audit.sources[choice]}
          </Link>
        ))}
      </Tabs>
      <div className="flex flex-wrap items-end gap-3">
        <SearchField label={tAudit.audit.actor} value={find.actor} search={set('actor')} />
        <SearchField
          label={tAudit.audit.action}
          value={find.action}
          choices={[...new Set(rows.map(({ action }) => typedOf(action, source)))].sort()}
          search={set('action')}
        />
        <SearchField label={tAudit.audit.object} value={find.object} search={set('object')} />
        <Day label={tAudit.audit.from} value={find.from} change={set('from')} />
        <Day label={tAudit.audit.to} value={find.to} change={set('to')} />
        {filtered ? clear : null}
      </div>
      <ListTable
        list={list}
        empty={filtered ? tAudit.audit.no_match : tAudit.audit.empty}
        next={filtered ? clear : undefined}
        caption={tAudit.audit.caption}
        columns={columnsOf({ source, ...find }, names)}
        rows={rows}
        keyOf={keyOf}
      />
      {rows.length > 0 ? (
        <Export
          name={`audit-${source}`}
          read={(page) => readAudit(source, asked, page)}
          fields={FIELDS}
          lines
          cut={(count) => tAudit.audit.cut(count, source)}
        />
      ) : null}
    </Page>
  )
}

type Names = ReadonlyMap<string, string>

/** The first page of accounts, and those with the name that was typed if there are more. */
const usePeople = (person: string): { named: Names; reading: boolean } => {
  const first = useQuery(namesQuery())
  const typed = nameIn(person)
  const hits = useQuery({ ...namesQuery(typed), enabled: typed !== '' && first.data?.whole === false })
  const [known, found] = [first.data?.names ?? NOBODY, hits.data?.names ?? NOBODY]
  const named = useMemo(() => new Map([...found, ...known]), [found, known])
  // A name that is not known yet would find no row.
  return { named, reading: typed !== '' && (first.isLoading || hits.isLoading) }
}

/** The same with the people of these rows who are not among them. */
const useNames = (rows: readonly AuditRow[], named: Names): Names => {
  const { whole = true } = useQuery(namesQuery()).data ?? {}
  const ids = whole ? [] : unnamedIn(rows, named)
  const { data = NOBODY } = useQuery({ ...namesOfQuery(ids), enabled: ids.length > 0 })
  return useMemo(() => new Map([...data, ...named]), [data, named])
}

const keyOf = ({ at, actor, action, object, request_id }: AuditRow): string =>
  [at, actor, action, object, request_id].join(' ')

type DayProps = { label: string; value: string; change: (value: string, replace: boolean) => void }

/** Each digit of a year is a day of its own, so that Back skips all but the last. */
const Day = ({ label, value, change }: DayProps) => {
  const id = useId()
  return (
    <Field id={id} label={label}>
      <input
        id={id}
        type="date"
        className="input"
        value={value}
        onChange={(event) => change(event.target.value, value !== '')}
      />
    </Field>
  )
}

const FIELDS: Fields<AuditRow> = {
  at: ({ at }) => at,
  actor: ({ actor }) => actor,
  roles: ({ roles }) => roles,
  action: ({ action }) => action,
  object: ({ object }) => object,
  outcome: ({ outcome }) => outcome,
  reason: ({ reason }) => reason,
  request_id: ({ request_id }) => request_id,
  details: ({ details }) => details,
}

type At = AuditFind & { source: Source }
/** The longest object that the logs can be asked for; that of many workflows is longer. */
const MOST = 512

/** Two links above one another: each on a line of its own, and large enough to be hit. */
const APART = 'block w-fit min-w-6 py-1'
const WAY = { className: APART, children: t.show }
/** The way to an operation, its parts or a resource. */
const Opened = ({ object }: { object: string }) => {
  const [, kind, id = '', part = ''] = /^(\w+):([^/]+)(?:\/(.+))?$/.exec(object) ?? []
  if (kind === 'operation') return <OperationLink id={id} {...WAY} />
  if (kind === 'resource') return <ResourceLink id={id} {...WAY} />
  const Inside = part === '' ? undefined : INSIDE[kind ?? '']
  return Inside ? Inside(id, part) : null
}
/** Objects of an operation. */
const INSIDE: Record<string, ((operation_id: string, id: string) => React.ReactNode) | undefined> = {
  gate: (operation_id, gate_id) => <GateLink {...{ operation_id, gate_id, ...WAY }} />,
  node: (operation_id, node_id) => <NodeLink {...{ operation_id, node_id, ...WAY }} />,
  patch: (operation_id, patch_id) => <PatchLink {...{ operation_id, patch_id, ...WAY }} />,
}

/** Ids appear short or as names; the tooltip has the full id. Links lead to all rows of the same actor, action or object. */
const columnsOf = (at: At, names: Names): Column<AuditRow>[] => [
  {
    name: tAudit.audit.columns.at,
    className: 'whitespace-nowrap',
    cell: (row) => <TimeText at={row.at} form="both" />,
  },
  {
    name: tAudit.audit.columns.who,
    className: 'wrap-anywhere',
    cell: ({ actor }) => (
      <Link to="/audit" search={{ ...at, actor: names.get(actor.replace(/^user:/, '')) ?? actor }} title={actor}>
        {readable(actor, names)}
      </Link>
    ),
  },
  { name: tAudit.audit.columns.roles, cell: ({ roles }) => roles?.join(', ') },
  {
    name: tAudit.audit.columns.action,
    kind: 'lead',
    className: 'wrap-anywhere',
    cell: ({ action }) => (
      <Link to="/audit" search={{ ...at, action: typedOf(action, at.source) }} title={action}>
        {actionWords(action)}
      </Link>
    ),
  },
  {
    name: tAudit.audit.columns.object,
    className: 'wrap-anywhere',
    cell: ({ object, details }) => (
      <>
        {object.length > MOST ? (
          <span title={object}>{readable(object, names)}</span>
        ) : (
          <Link to="/audit" search={{ ...at, object }} title={object} className={APART}>
            {readable(object, names)}
          </Link>
        )}
        <Opened object={object} />
        {details ? <div className="text-muted">{detailsOf(details, names)}</div> : null}
      </>
    ),
  },
  { name: tAudit.audit.columns.outcome, cell: ({ outcome }) => tAudit.audit.outcomes[outcome] ?? outcome },
  {
    name: tAudit.audit.columns.reason,
    className: 'wrap-anywhere',
    cell: ({ reason }) => (reason === null ? null : quoted(shown(reason))),
  },
  {
    name: tAudit.audit.columns.request,
    cell: ({ request_id }) => (request_id === null ? null : <code title={request_id}>{request_id.slice(-6)}</code>),
  },
]
