import { Suspense, useState } from 'react'
import { Button } from '../../forms/button.tsx'
import { lazyPart } from '../../ui/lazy.ts'
import { tBulk } from '../../words/frame/inbox-parts.ts'
import { type Ballot, MOST, nounOf, type Together } from './alike.ts'

const BulkDialog = lazyPart(() => import('./dialog.tsx').then((part) => ({ default: part.BulkDialog })))
const words = tBulk.bar
type Selected = { on: boolean; chosen: Ballot[]; all: () => void; clear: () => void }

/** The number of selected items, and the two decisions on them. An open dialog stays after the last one is decided. */
export const SelectionBar = ({ selection }: { selection: Selected }) => {
  const { on, chosen, all, clear } = selection
  const [open, setOpen] = useState<{ rows: Ballot[]; verdict: Together }>()
  const close = () => {
    setOpen(undefined)
    clear()
  }
  const decide = (verdict: Together, look: string) => (
    <Button look={look} onClick={() => setOpen({ rows: chosen, verdict })} word={words.decide[verdict]} />
  )
  return (
    <>
      {on ? (
        <section aria-label={words.title} className="flex flex-wrap items-center gap-3">
          <p role="status" className="text-muted empty:-mr-6">
            {chosen.length >= MOST
              ? words.most(MOST, nounOf(chosen))
              : chosen.length > 0
                ? words.selected(chosen.length, nounOf(chosen))
                : null}
          </p>
          <Button look="quiet" onClick={chosen.length > 0 ? clear : all}>
            {chosen.length > 0 ? words.clear : words.all}
          </Button>
          {chosen.length > 0 ? (
            <>
              {decide('approve', 'main')}
              {decide('reject', 'danger')}
            </>
          ) : null}
        </section>
      ) : null}
      {open ? (
        <Suspense fallback={null}>
          <BulkDialog {...open} close={close} />
        </Suspense>
      ) : null}
    </>
  )
}
