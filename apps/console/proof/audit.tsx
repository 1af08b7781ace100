import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useId, useState } from 'react'
import type { Problem } from '../../shared/contracts/client/problem.ts'
import { problemOf } from '../api/client.ts'
import { saveAs } from '../api/download.ts'
import type { AuditRow } from '../api/types.ts'
import { Field } from '../forms/field.tsx'
import { SearchField } from '../forms/search.tsx'
import {
  type AuditFind,
  actorOf,
  allRows,
  auditQuery,
  csvOf,
  isOfUsers,
  namesQuery,
  readable,
  SOURCES,
  type Source,
} from '../queries/audit.ts'
import { rowsOf } from '../queries/pages.ts'
import { ProblemText } from '../ui/failure.tsx'
import { Heading, Page } from '../ui/page.tsx'
import { type Column, ListTable } from '../ui/table.tsx'
import { TimeText } from '../values/time.tsx'
import { tAudit } from '../words/audit.ts'
import { quoted } from '../words/frame/language.ts'

const NOBODY: ReadonlyMap<string, string> = new Map()
const NOTHING: AuditFind = { actor: '', action: '', object: '', from: '', to: '' }

/** Who did what: the logs of operations, catalog, users and sign-ins, with filters and an export. */
export const AuditPage = () => {
  const { source, ...find } = useSearch({ from: '/shell/audit' })
  const navigate = useNavigate({ from: '/audit' })
  const names = useQuery(namesQuery()).data ?? NOBODY
  const asked = { ...find, actor: actorOf(source, find.actor, names) }
  const list = useInfiniteQuery(auditQuery(source, asked))
  const rows = rowsOf(list)
  const filtered = Object.values(find).some((value) => value !== '')
  const set = (name: keyof AuditFind) => (value: string) =>
    void navigate({ search: (before) => ({ ...before, [name]: value }), replace: true })
  const clear = (
    <Link to="/audit" search={{ source, ...NOTHING }} className="button quiet">
      {tAudit.audit.clear}
    </Link>
  )
  return (
    <Page>
      <Heading title={tAudit.audit.title}>{tAudit.audit.title}</Heading>
      <p className="max-w-text text-muted">{tAudit.audit.intro}</p>
      <nav className="tabs" aria-label={tAudit.audit.sources_label}>
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
      </nav>
      <div className="flex flex-wrap items-end gap-3">
        <SearchField label={tAudit.audit.actor} value={find.actor} search={set('actor')} />
        <SearchField
          label={tAudit.audit.action}
          value={find.action}
          choices={[...new Set(rows.map(({ action }) => action))].sort()}
          search={set('action')}
        />
        {isOfUsers(source) ? null : (
          <SearchField label={tAudit.audit.object} value={find.object} search={set('object')} />
        )}
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
      {rows.length > 0 ? <Export source={source} find={asked} /> : null}
    </Page>
  )
}

const keyOf = ({ at, actor, action, object, request_id }: AuditRow): string =>
  [at, actor, action, object, request_id].join(' ')

const Day = ({ label, value, change }: { label: string; value: string; change: (value: string) => void }) => {
  const id = useId()
  return (
    <Field id={id} label={label}>
      <input id={id} type="date" className="input" value={value} onChange={(event) => change(event.target.value)} />
    </Field>
  )
}

/** Exports the rows as a file, up to the number that a browser should hold; beyond that it names the command line. */
const Export = ({ source, find }: { source: Source; find: AuditFind }) => {
  const [said, setSaid] = useState<{ words: string } | { problem: Problem }>()
  const [busy, setBusy] = useState(false)
  const save = async (kind: 'csv' | 'jsonl') => {
    if (busy) return
    setBusy(true)
    try {
      const { rows, cut } = await allRows(source, find, (count) => setSaid({ words: tAudit.audit.exporting(count) }))
      const text = kind === 'csv' ? csvOf(rows) : rows.map((row) => `${JSON.stringify(row)}\n`).join('')
      saveAs(new Blob([text], { type: kind === 'csv' ? 'text/csv' : 'application/jsonl' }), `audit-${source}.${kind}`)
      setSaid({ words: cut ? tAudit.audit.cut(rows.length, source) : tAudit.audit.exported(rows.length) })
    } catch (error) {
      setSaid({ problem: problemOf(error) })
    }
    setBusy(false)
  }
  return (
    <div className="flex flex-wrap items-center gap-3">
      <button type="button" className="button" aria-disabled={busy} onClick={() => void save('csv')}>
        {tAudit.audit.csv}
      </button>
      <button type="button" className="button" aria-disabled={busy} onClick={() => void save('jsonl')}>
        {tAudit.audit.jsonl}
      </button>
      <div role="status">
        {said === undefined ? null : 'problem' in said ? <ProblemText problem={said.problem} /> : <p>{said.words}</p>}
      </div>
    </div>
  )
}

type At = AuditFind & { source: Source }

/** Ids appear short or as names; the tooltip has the full id. Links lead to all rows of the same actor or action. */
const columnsOf = (at: At, names: ReadonlyMap<string, string>): Column<AuditRow>[] => [
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
      <Link to="/audit" search={{ ...at, action }}>
        {action}
      </Link>
    ),
  },
  {
    name: tAudit.audit.columns.object,
    className: 'wrap-anywhere',
    cell: ({ object }) => <span title={object}>{readable(object, names)}</span>,
  },
  { name: tAudit.audit.columns.outcome, cell: ({ outcome }) => tAudit.audit.outcomes[outcome] ?? outcome },
  {
    name: tAudit.audit.columns.reason,
    className: 'wrap-anywhere',
    cell: ({ reason }) => (reason === null ? null : quoted(reason)),
  },
  {
    name: tAudit.audit.columns.request,
    cell: ({ request_id }) => (request_id === null ? null : <code title={request_id}>{request_id.slice(-6)}</code>),
  },
]
