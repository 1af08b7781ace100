import { useIsFetching } from '@tanstack/react-query'
import { ChevronDown } from 'lucide-react'
import { Suspense, useEffect, useState } from 'react'
import { Button } from '../forms/button.tsx'
import { currentUser, signOut } from '../session/token.ts'
import { lazyPart } from '../ui/lazy.ts'
import { t } from '../words/index.ts'

const load = () => import('../ui/overlays.tsx').then(({ UserMenu }) => ({ default: UserMenu }))
const LazyMenu = lazyPart(load)

const FIRST_MS = 1000

/** The user menu. Its code is fetched when the page is idle, or on first use. */
export const UserMenu = () => {
  const [wanted, setWanted] = useState(false)
  const reads = useIsFetching() > 0
  useEffect(() => {
    if (reads) return
    const idle = window.requestIdleCallback ?? ((work: () => void) => setTimeout(work, 500))
    // The page itself comes first. If the prefetch fails, the first use fetches it.
    const timer = setTimeout(
      () =>
        idle(() => {
          load().catch(() => {})
          void import('../queries/kept.ts').then(({ followKept }) => followKept()).catch(() => {})
        }),
      FIRST_MS,
    )
    return () => clearTimeout(timer)
  }, [reads])
  const name = currentUser()?.username ?? ''
  const plain = (
    <Button
      look="quiet"
      aria-haspopup="menu"
      aria-label={t.nav.user(name)}
      onPointerEnter={() => load().catch(() => {})}
      onClick={() => setWanted(true)}
    >
      {name}
      <ChevronDown size={16} aria-hidden="true" />
    </Button>
  )
  // Not before it is used: a press that began on this button would be lost.
  if (!wanted) return plain
  return (
    <Suspense fallback={plain}>
      <LazyMenu name={name} signOut={() => void signOut()} />
    </Suspense>
  )
}
