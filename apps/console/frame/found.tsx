import { Suspense } from 'react'
import type { FoundResource } from '../api/types.ts'
import { shortId } from '../kit/format.ts'
import { lazyPart } from '../ui/lazy.ts'
import { OperationStatusMark } from '../values/status.tsx'
import { t } from '../words/index.ts'
import type { Item } from './places.ts'

/** Where a resource matched; the words of the catalog come with the first one. */
const MatchedIn = lazyPart(() =>
  import('../words/catalog.ts').then(({ tCatalog }) => ({
    default: ({ fields }: { fields: FoundResource['matched'] }) => (
      <span className="text-muted"> {tCatalog.resources.in_fields(fields)}</span>
    ),
  })),
)

type FoundProps = { id: string; items: Item[]; at: number; go: (item: Item) => void }

/** The list below the go-to field. */
export const Found = ({ id, items, at, go }: FoundProps) => (
  <div id={`${id}-list`} role="listbox" aria-label={t.nav.go_to} className="popup absolute mt-1 w-full">
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
        onClick={() => go(item)}
      >
        <Option item={item} />
      </div>
    ))}
    {items.length === 0 ? <div className="px-2 py-1.5 text-muted">{t.nav.go_to_none}</div> : null}
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
  if ('gate' in item)
    return (
      <>
        <bdi className="min-w-0 flex-1 truncate">{item.gate.question}</bdi>
        <span className="text-muted">{t.noun.gate}</span>
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
