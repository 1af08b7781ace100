import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { PackView } from '../../shared/contracts/operations/plans.ts'
import { packsQuery } from '../queries/changes.ts'
import { Card } from '../ui/card.tsx'
import { CopyButton } from '../ui/copy.tsx'
import { type Column, DataTable, Listing } from '../ui/table.tsx'
import { TimeText } from '../values/time.tsx'
import { tAdmin } from '../words/admin.ts'
import { AdminPage } from './frame.tsx'

const words = tAdmin.pack

/** The packs of this installation: versions, procedures with their steps, and their use. */
export const PacksPage = () => {
  const list = useQuery(packsQuery())
  const packs = [...Map.groupBy(list.data?.items ?? [], ({ pack }) => pack)]
  return (
    <AdminPage title={words.title}>
      <p className="max-w-text text-muted">
        {words.what} <code>npm run packs:check</code> {words.check}
      </p>
      <Listing list={list} empty={packs.length === 0 ? words.empty : undefined} cards>
        {packs.map(([pack, versions]) => (
          <Pack key={pack} pack={pack} versions={versions} />
        ))}
      </Listing>
    </AdminPage>
  )
}

const Pack = ({ pack, versions }: { pack: string; versions: PackView[] }) => {
  const newest = versions.find(({ status }) => status === 'current')
  return (
    <Card title={pack} note={newest ? words.version(newest.version) : words.status.retired}>
      <DataTable caption={words.versions_of(pack)} columns={VERSIONS} rows={versions} keyOf="version" />
      {newest ? (
        <DataTable
          caption={words.procedures_of(pack)}
          columns={proceduresOf(pack)}
          rows={newest.procedures}
          keyOf="key"
        />
      ) : null}
    </Card>
  )
}

const VERSIONS: Column<PackView>[] = [
  { name: words.columns.version, kind: 'lead', cell: ({ version }) => <code>{version}</code> },
  { name: words.columns.status, cell: ({ status }) => words.status[status] },
  { name: words.columns.used, cell: ({ used_by }) => words.used(used_by) },
  { name: words.columns.loaded, cell: ({ loaded_at }) => loaded_at && <TimeText at={loaded_at} /> },
  {
    name: words.columns.digest,
    cell: ({ digest }) => (
      <>
        <code>{digest.replace('sha256:', '').slice(0, 6)}</code> <CopyButton text={digest} />
      </>
    ),
  },
]

type Procedure = PackView['procedures'][number]
const proceduresOf = (pack: string): Column<Procedure>[] => [
  {
    name: words.columns.procedure,
    kind: 'lead',
    cell: ({ title, key, kind, resource_type }) => (
      <>
        <Link
          to="/new"
          search={{
            ...{ kind, resource: '', type: kind === 'change' ? (resource_type ?? '') : '' },
            procedure: kind === 'change' ? '' : `${pack}/${key}`,
          }}
          data-row=""
        >
          {title}
        </Link>{' '}
        <code className="text-muted">{key}</code>
      </>
    ),
  },
  { name: words.columns.kind, cell: ({ kind }) => words.kind[kind] },
  { name: words.columns.type, cell: ({ resource_type }) => resource_type && <code>{resource_type}</code> },
  {
    name: words.columns.steps,
    className: 'wrap-anywhere',
    cell: ({ steps }) => (
      <ol className="flex flex-wrap gap-x-3">
        {steps.map(({ id, name, executor }) => (
          <li key={id}>
            {name} <span className="text-muted">{executor}</span>
          </li>
        ))}
      </ol>
    ),
  },
  { name: words.columns.gates, cell: ({ gates }) => gates.join(', ') || null },
]
