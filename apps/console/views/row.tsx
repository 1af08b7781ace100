import { useQuery } from '@tanstack/react-query'
import { Link, useSearch } from '@tanstack/react-router'
import { Suspense, useState } from 'react'
import type { SavedView, ViewList } from '../../shared/contracts/identity/views.ts'
import { Button } from '../forms/button.tsx'
import { placeOf, viewsQuery } from '../queries/views.ts'
import { lazyPart } from '../ui/lazy.ts'
import { tViews } from '../words/views.ts'
import { filtersOf, isSame } from './filters.ts'

const load = () => import('./dialogs.tsx')
const SaveDialog = lazyPart(() => load().then((part) => ({ default: part.SaveDialog })))
const ChangeDialog = lazyPart(() => load().then((part) => ({ default: part.ChangeDialog })))
const DeleteDialog = lazyPart(() => load().then((part) => ({ default: part.DeleteDialog })))

/** A list as the navigation opens it: there is no search to name. */
const PLAIN: Record<ViewList, Record<string, string>> = {
  inbox: { for: 'me' },
  operations: { tab: 'running' },
  resources: {},
}

type Open = 'save' | { change?: SavedView; delete?: SavedView }

/** The views of a list, and the possible actions with its current filters. */
export const ViewsRow = ({ list }: { list: ViewList }) => {
  const filters = filtersOf(useSearch({ strict: false }))
  const read = useQuery(viewsQuery())
  const [open, setOpen] = useState<Open>()
  const all = read.data?.items ?? []
  const views = all.filter((view) => view.list === list)
  const shown = views.find((view) => isSame(view.filters, filters))
  const plain = isSame(filters, PLAIN[list])
  const close = () => setOpen(undefined)
  if (plain && views.length === 0 && !read.isError) return null
  return (
    <div className="flex flex-wrap items-center gap-3">
      {views.length > 0 ? (
        <nav className="choices" aria-label={tViews.title}>
          {views.map((view) => (
            <Link
              key={view.view_id}
              {...placeOf(view)}
              activeProps={{}}
              aria-current={view === shown ? 'page' : undefined}
              className="wrap-anywhere"
            >
              <bdi>{view.name}</bdi>
              {view.group === null ? null : (
                <span
                  className="text-muted"
                  title={
                    view.owner === null ? tViews.shared_with(view.group) : tViews.shared_by(view.owner, view.group)
                  }
                >
                  {' · '}
                  {view.group}
                </span>
              )}
            </Link>
          ))}
        </nav>
      ) : null}
      {read.isError ? <span className="text-muted">{tViews.failed}</span> : null}
      {shown?.owner === null ? (
        (['change', 'delete'] as const).map((verb) => (
          <Button
            key={verb}
            look="quiet"
            word={tViews[verb]}
            aria-label={tViews[`${verb}_one`](shown.name)}
            onClick={() => setOpen({ [verb]: shown })}
          />
        ))
      ) : read.isSuccess && !plain && !shown ? (
        // The words of the first one begin where the page does.
        <Button
          look={`quiet ${views.length === 0 ? '-ml-3' : ''}`}
          word={tViews.save}
          onClick={() => setOpen('save')}
        />
      ) : null}
      <Suspense fallback={null}>
        {open === 'save' ? <SaveDialog list={list} filters={filters} views={all} close={close} /> : null}
        {typeof open === 'object' && open.change ? <ChangeDialog view={open.change} close={close} /> : null}
        {typeof open === 'object' && open.delete ? <DeleteDialog view={open.delete} close={close} /> : null}
      </Suspense>
    </div>
  )
}
