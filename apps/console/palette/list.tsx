import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useParams, useRouter } from '@tanstack/react-router'
import { useEffect, useImperativeHandle, useLayoutEffect, useState } from 'react'
import type { PaletteProps } from '../frame/go-to.tsx'
import { shown } from '../kit/format.ts'
import { useRested } from '../kit/rested.ts'
import { wishFor } from '../kit/wish.ts'
import { inboxQuery, meQuery, waitingQuery } from '../queries/me.ts'
import { rowsOf } from '../queries/pages.ts'
import { placeOf, viewsQuery } from '../queries/views.ts'
import { NodeStatus } from '../values/status.tsx'
import { palette } from '../words/frame/palette.ts'
import { t } from '../words/index.ts'
import { useActions } from './actions.ts'
import { foundIntent, foundOperation, foundResource, useNodes, useServer } from './found.tsx'
import type { Item } from './items.ts'
import { usePages, useRecent } from './pages.ts'
import { askedFor, ranked } from './rank.ts'

/** How long a pause in typing precedes a request to the server; data that this tab has is shown at once. */
const REST_MS = 150
const MAX = 8
/** Shorter texts match half of all names. */
const LEAST = 2

const textOf = ({ text, id, of = '' }: Item): [string, string | undefined] => [`${text} ${of}`, id]

/** Everything that the typed text leads to, best first; the server's results follow those of this tab. */
const useItems = (typed: string): { items: Item[]; busy: boolean } => {
  const me = useQuery(meQuery()).data
  const { only, q } = askedFor(typed)
  const actions = useActions(me)
  const pages = usePages(me)
  const recent = useRecent()
  const views = useQuery(viewsQuery()).data?.items ?? []
  const mine = useMine()
  const nodes = useNodes(only === 'nodes' || (only === undefined && q.length >= LEAST))
  const line = useLine(only === 'line' ? q : '')
  const rested = useRested(q, REST_MS)
  const asks = only === undefined && q.length >= LEAST
  const server = useServer(rested, asks && rested.length >= LEAST)
  if (only === 'line') return { items: line, busy: false }
  if (only === 'actions') return { items: ranked(q, actions, textOf), busy: false }
  if (only === 'nodes') return { items: ranked(q, nodes, textOf).slice(0, MAX * 2), busy: false }
  if (q.length < LEAST) return { items: q === '' ? [...actions, ...mine.slice(0, MAX), ...recent] : [], busy: q !== '' }
  const kept = views.map(
    (view): Item => ({
      ...{ key: `view ${view.view_id}`, text: view.name, aside: palette.view_of(view.list), link: placeOf(view) },
    }),
  )
  const known = ranked(q, [...pages, ...actions, ...kept, ...mine], textOf)
  return {
    items: [
      ...known.slice(0, MAX),
      ...ranked(q, nodes, textOf).slice(0, MAX),
      ...(server.operations ?? []).map(foundOperation),
      ...(server.intents ?? []).map(foundIntent),
      ...(server.resources ?? []).map(foundResource),
    ],
    busy: rested !== q || server.busy,
  }
}

/** Failures, gates and patches that wait for this person, also found by the title of their operation. */
const useMine = (): Item[] => {
  const gates = rowsOf(useInfiniteQuery(inboxQuery('me')))
  const { failures = [], patches = [] } = useQuery(waitingQuery('me')).data ?? {}
  return [
    ...failures.flatMap(({ operation_id, nodes: [node], operation_title: of }): Item[] =>
      node === undefined
        ? []
        : [
            {
              ...{ key: `failure ${operation_id}`, text: node.name, of, aside: <NodeStatus state={node.state} /> },
              link: { to: '/operations/$operation_id/nodes/$node_id', params: { operation_id, node_id: node.node_id } },
            },
          ],
    ),
    ...gates.map(
      ({ operation_id, gate_id, question, operation_title: of }): Item => ({
        ...{ key: `gate ${operation_id} ${gate_id}`, text: question, of, aside: of },
        link: { to: '/operations/$operation_id/gates/$gate_id', params: { operation_id, gate_id } },
      }),
    ),
    ...patches.map(
      ({ operation_id, patch_id, reason, operation_title: of }): Item => ({
        ...{ key: `patch ${patch_id}`, text: reason, of, aside: of },
        link: { to: '/operations/$operation_id/patches/$patch_id', params: { operation_id, patch_id } },
      }),
    ),
  ]
}

const LINE = 'line'

/** The line with the typed number, in the log of the open node. */
const useLine = (typed: string): Item[] => {
  const { operation_id = '', node_id } = useParams({ strict: false })
  const line = Number(typed)
  if (node_id === undefined || !Number.isSafeInteger(line) || line < 1) return []
  const link = { to: '/operations/$operation_id/nodes/$node_id', params: { operation_id, node_id } } as const
  return [
    {
      ...{ key: LINE, text: palette.line(line), aside: null },
      link: { ...link, search: ((before: object) => ({ ...before, tab: 'logs' })) as never, hash: `L${line}` },
    },
  ]
}

/** The list below the go-to field. */
export const Palette = ({ id, text, early, keys, close, select, wait }: PaletteProps) => {
  const router = useRouter()
  const typed = text.trim()
  const { items, busy } = useItems(typed)
  const [picked, pick] = useState<string>()
  const at = Math.max(
    0,
    items.findIndex(({ key }) => key === picked),
  )
  const open = (item: Item | undefined) => {
    if (item === undefined) return
    close()
    if (item.href !== undefined) router.history.push(item.href)
    if (item.link) void router.navigate(item.link as never)
    // The keys of a log that is in view work again.
    if (item.key === LINE)
      document.querySelector<HTMLElement>('.log :is(.log-lines, .log-lines > *)[tabindex]')?.focus()
    if (item.wish) wishFor(item.wish.what, item.wish.of)
  }
  // biome-ignore lint/correctness/useExhaustiveDependencies: another text begins at its first line
  useEffect(() => pick(undefined), [typed])
  useImperativeHandle(keys, () => ({
    press: (key) => {
      if (key === 'Enter' && (items.length > 0 || !busy)) open(items[at])
      else if (key === 'Enter') wait()
      else pick(items[Math.min(items.length - 1, Math.max(0, at + (key === 'ArrowDown' ? 1 : -1)))]?.key)
    },
  }))
  const option = items.length > 0 ? `${id}-${at}` : undefined
  useLayoutEffect(() => select(option), [option, select])
  // biome-ignore lint/correctness/useExhaustiveDependencies: the answers to the text decide
  useEffect(() => {
    if (early && !busy) open(items[0])
  }, [early, busy])
  useLayoutEffect(() => {
    if (option) document.getElementById(option)?.scrollIntoView?.({ block: 'nearest' })
  }, [option])
  return (
    <div className="popup palette">
      <div id={`${id}-list`} role="listbox" aria-label={t.nav.go_to}>
        {items.map((item, index) => (
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
            onClick={() => open(item)}
          >
            <bdi className="min-w-0 flex-1 truncate">{shown(item.text)}</bdi>
            <span className="text-muted">{item.aside}</span>
          </div>
        ))}
      </div>
      {items.length === 0 && !busy ? (
        <p className="px-2 py-1.5 text-muted">{askedFor(typed).only === 'line' ? palette.no_line : palette.none}</p>
      ) : null}
      <p className="hint">{palette.hint}</p>
    </div>
  )
}
