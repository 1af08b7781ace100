import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Search } from 'lucide-react'
import { Suspense, useDeferredValue, useEffect, useId, useRef, useState } from 'react'
import { reading } from '../api/read.ts'
import { inboxQuery, meQuery } from '../queries/me.ts'
import { searchQuery } from '../queries/resources.ts'
import { placeOf, viewsQuery } from '../queries/views.ts'
import { lazyPart } from '../ui/lazy.ts'
import { t } from '../words/index.ts'
import { type Item, placesNamed } from './places.ts'

/** The list comes with the first search. */
const Found = lazyPart(() => import('./found.tsx').then((part) => ({ default: part.Found })))
const MAX = 6

/** Pages, own views and gates that wait for the person by name, operations by title, ticket or end of id, and the resources that search ranks first; undefined until the first answer. */
const useItems = (q: string, enabled: boolean): { items?: Item[]; busy: boolean } => {
  const asked = { enabled, staleTime: 10_000 }
  const started = useQuery({
    queryKey: ['go-to', 'operations', q],
    ...asked,
    queryFn: reading('/v1/operations', { query: { q, page_size: MAX, sort: '-created_at' } }),
  })
  const known = useQuery({ ...searchQuery({ q }, MAX), ...asked })
  const busy = started.isFetching || known.isFetching
  const operations = started.data?.items
  const resources = known.data?.items
  const holds = (name: string) => name.toLowerCase().includes(q.toLowerCase())
  const views = useQuery({ ...viewsQuery(), enabled }).data?.items.filter(({ name }) => holds(name))
  const gates = useQuery({ ...inboxQuery('me'), enabled }).data?.items.filter(
    ({ question, operation_title }) => holds(question) || holds(operation_title),
  )
  const places = placesNamed(useQuery(meQuery()).data, q)
  if (
    !enabled ||
    (operations === undefined && resources === undefined && ![...(views ?? []), ...(gates ?? []), ...places].length)
  )
    return { busy }
  const items = [
    ...places.slice(0, MAX).map((place) => ({ key: place.link.to, place })),
    ...(views ?? []).slice(0, MAX).map((view) => ({ key: view.view_id, view })),
    ...(gates ?? []).slice(0, MAX).map((gate) => ({ key: gate.operation_id + gate.gate_id, gate })),
    ...(operations ?? []).map((row) => ({ key: row.operation_id, row })),
    ...(resources ?? []).map((resource) => ({ key: resource.resource_id, resource })),
  ]
  return { items, busy }
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
  const typed = text.trim()
  const q = useDeferredValue(typed)
  const { items, busy } = useItems(q, open && q.length > 1)
  /** Enter came before the answers to this text: the first of them is opened. */
  const [early, setEarly] = useState<string>()
  useFieldKey(field)

  const go = (item: Item | undefined) => {
    if (item === undefined) return
    setEarly(undefined)
    setText('')
    setOpen(false)
    if ('place' in item) void navigate(item.place.link)
    else if ('view' in item) void navigate(placeOf(item.view))
    else if ('gate' in item) void navigate({ to: '/operations/$operation_id/gates/$gate_id', params: item.gate })
    else if ('row' in item) void navigate({ to: '/operations/$operation_id/graph', params: { operation_id: item.key } })
    else
      void navigate({ to: '/resources/$resource_id', params: { resource_id: item.key }, search: { tab: 'overview' } })
  }
  // biome-ignore lint/correctness/useExhaustiveDependencies: the answers to the text decide
  useEffect(() => {
    if (early === q && !busy) go(items?.[0])
  }, [early, q, busy])
  const key = (event: React.KeyboardEvent) => {
    if (event.key === 'ArrowDown') setAt((before) => Math.min(before + 1, (items?.length ?? 0) - 1))
    else if (event.key === 'ArrowUp') setAt((before) => Math.max(before - 1, 0))
    else if (event.key === 'Enter' && items?.length && q === typed) go(items[at])
    else if (event.key === 'Enter') setEarly(typed)
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
          setEarly(undefined)
          setOpen(true)
        }}
        onFocus={() => {
          setOpen(true)
          void import('./found.tsx').catch(() => {})
        }}
        onBlur={() => setOpen(false)}
        onKeyDown={key}
      />
      {items ? (
        <Suspense fallback={null}>
          <Found id={id} items={items} at={at} go={go} />
        </Suspense>
      ) : null}
    </search>
  )
}
