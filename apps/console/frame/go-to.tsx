import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Search } from 'lucide-react'
import { Suspense, useDeferredValue, useEffect, useId, useRef, useState } from 'react'
import type { SavedView } from '../../shared/contracts/identity/views.ts'
import { reading } from '../api/read.ts'
import type { FoundResource, OperationRow } from '../api/types.ts'
import { shortId } from '../kit/format.ts'
import { meQuery } from '../queries/me.ts'
import { searchQuery } from '../queries/resources.ts'
import { placeOf, viewsQuery } from '../queries/views.ts'
import { lazyPart } from '../ui/lazy.ts'
import { OperationStatusMark } from '../values/status.tsx'
import { t } from '../words/index.ts'
import { placesNamed } from './places.ts'

const MAX = 6
type Item = { key: string } & (
  | { place: Place }
  | { row: OperationRow }
  | { resource: FoundResource }
  | { view: SavedView }
)
type Place = ReturnType<typeof placesNamed>[number]

/** Pages and own views by name, operations by title, ticket or end of id, and the resources that search ranks first; undefined until the first answer. */
const useItems = (q: string, enabled: boolean): Item[] | undefined => {
  const asked = { enabled, staleTime: 10_000 }
  const operations = useQuery({
    queryKey: ['go-to', 'operations', q],
    ...asked,
    queryFn: reading('/v1/operations', { query: { q, page_size: MAX, sort: '-created_at' } }),
  }).data?.items
  const resources = useQuery({ ...searchQuery({ q }, MAX), ...asked }).data?.items
  const views = useQuery({ ...viewsQuery(), enabled }).data?.items.filter(({ name }) =>
    name.toLowerCase().includes(q.toLowerCase()),
  )
  const places = placesNamed(useQuery(meQuery()).data, q)
  if (!enabled || (operations === undefined && resources === undefined && !views?.length && places.length === 0))
    return undefined
  return [
    ...places.slice(0, MAX).map((place) => ({ key: place.link.to, place })),
    ...(views ?? []).slice(0, MAX).map((view) => ({ key: view.view_id, view })),
    ...(operations ?? []).map((row) => ({ key: row.operation_id, row })),
    ...(resources ?? []).map((resource) => ({ key: resource.resource_id, resource })),
  ]
}

/** Ctrl-K or Cmd-K brings the keyboard to the field. */
const useFieldKey = (field: React.RefObject<HTMLInputElement | null>): void =>
  useEffect(() => {
    const hear = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return
      event.preventDefault()
      field.current?.focus()
      field.current?.select()
    }
    window.addEventListener('keydown', hear)
    return () => window.removeEventListener('keydown', hear)
  }, [field])

/** Finds pages, views, operations and resources from every page. */
export const GoTo = () => {
  const [text, setText] = useState('')
  const [open, setOpen] = useState(false)
  const [at, setAt] = useState(0)
  const field = useRef<HTMLInputElement>(null)
  const id = useId()
  const navigate = useNavigate()
  const q = useDeferredValue(text.trim())
  const items = useItems(q, open && q.length > 1)
  useFieldKey(field)

  const go = (item: Item | undefined) => {
    if (item === undefined) return
    setText('')
    setOpen(false)
    if ('place' in item) void navigate(item.place.link)
    else if ('view' in item) void navigate(placeOf(item.view))
    else if ('row' in item) void navigate({ to: '/operations/$operation_id/graph', params: { operation_id: item.key } })
    else
      void navigate({ to: '/resources/$resource_id', params: { resource_id: item.key }, search: { tab: 'overview' } })
  }
  const key = (event: React.KeyboardEvent) => {
    if (event.key === 'ArrowDown') setAt((before) => Math.min(before + 1, (items?.length ?? 0) - 1))
    else if (event.key === 'ArrowUp') setAt((before) => Math.max(before - 1, 0))
    else if (event.key === 'Enter') go(items?.[at])
    else if (event.key === 'Escape') setOpen(false)
    else return
    event.preventDefault()
  }
  return (
    <search className="relative mr-auto ml-2 w-full max-w-80 min-w-0 max-sm:ml-0">
      <Search
        size={16}
        aria-hidden="true"
        className="pointer-events-none absolute top-1/2 left-2.5 -translate-y-1/2 text-muted"
      />
      <input
        ref={field}
        className="input !pl-8"
        role="combobox"
        aria-label={t.nav.go_to}
        aria-expanded={items !== undefined}
        aria-controls={`${id}-list`}
        aria-autocomplete="list"
        aria-activedescendant={items && items.length > 0 ? `${id}-${at}` : undefined}
        placeholder={t.nav.go_to_placeholder}
        value={text}
        onChange={(event) => {
          setText(event.target.value)
          setAt(0)
          setOpen(true)
        }}
        onFocus={() => setOpen(true)}
        onBlur={() => setOpen(false)}
        onKeyDown={key}
      />
      <Found id={id} items={items} at={at} go={go} />
    </search>
  )
}

/** Where a resource matched; the words of the catalog come with the first one. */
const MatchedIn = lazyPart(() =>
  import('../words/catalog.ts').then(({ tCatalog }) => ({
    default: ({ fields }: { fields: FoundResource['matched'] }) => (
      <span className="text-muted"> {tCatalog.resources.in_fields(fields)}</span>
    ),
  })),
)

type FoundProps = { id: string; items: Item[] | undefined; at: number; go: (item: Item) => void }

const Found = ({ id, items, at, go }: FoundProps) => (
  <div id={`${id}-list`} role="listbox" aria-label={t.nav.go_to} className={items ? 'popup absolute mt-1 w-full' : ''}>
    {items?.map((item, index) => (
      // biome-ignore lint/a11y/useFocusableInteractive: the field keeps the focus and names the active option
      // biome-ignore lint/a11y/useKeyWithClickEvents: keys are handled by the field
      <div
        key={item.key}
        id={`${id}-${index}`}
        role="option"
        aria-selected={index === at}
        data-highlighted={index === at ? '' : undefined}
        className="popup-item"
        onPointerDown={(event) => event.preventDefault()}
        onClick={() => go(item)}
      >
        <Option item={item} />
      </div>
    ))}
    {items?.length === 0 ? <div className="px-2 py-1.5 text-muted">{t.nav.go_to_none}</div> : null}
  </div>
)

const Option = ({ item }: { item: Item }) => {
  if ('place' in item)
    return (
      <>
        <span className="min-w-0 flex-1 truncate">{item.place.word}</span>
        <span className="text-muted">{t.nav.page}</span>
      </>
    )
  if ('view' in item)
    return (
      <>
        <bdi className="min-w-0 flex-1 truncate">{item.view.name}</bdi>
        <span className="text-muted">{t.nav.view_of(item.view.list)}</span>
      </>
    )
  if ('row' in item)
    return (
      <>
        <span className="min-w-0 flex-1 truncate">{item.row.title}</span>
        <OperationStatusMark status={item.row.status} blockedOn={item.row.blocked_on} />
        <code className="text-muted">{shortId(item.key)}</code>
      </>
    )
  const { display_name, name, matched, type_key } = item.resource
  return (
    <>
      <span className="min-w-0 flex-1 truncate">
        {display_name || name}
        {matched.includes('name') ? null : (
          <Suspense fallback={null}>
            <MatchedIn fields={matched} />
          </Suspense>
        )}
      </span>
      <code className="text-muted">{type_key}</code>
    </>
  )
}
