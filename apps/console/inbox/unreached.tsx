import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Suspense } from 'react'
import { meQuery, ownDestinationsQuery } from '../queries/me.ts'
import { lazyPart } from '../ui/lazy.ts'
import { tDecide } from '../words/decide.ts'

/** Few people administer, and their words are many. */
const SecondNeeded = lazyPart(() => import('./second.tsx').then((part) => ({ default: part.SecondNeeded })))

/** What concerns the person besides operations: changes of rights that wait for them, and whether messages reach them. */
export const Besides = () => {
  const administers = useQuery(meQuery()).data?.permissions.includes('identity:admin')
  return (
    <>
      {administers ? (
        <Suspense fallback={null}>
          <SecondNeeded />
        </Suspense>
      ) : null}
      <Unreached />
    </>
  )
}

/** For people whom no message reaches: neither decisions nor warnings about their account. */
const Unreached = () => {
  const items = useQuery(ownDestinationsQuery()).data?.items
  if (items === undefined || items.some(({ status }) => status === 'active')) return null
  return (
    <p className="text-muted" role="note">
      {tDecide.inbox.unreached}{' '}
      <Link to="/settings/notifications" className="link">
        {tDecide.inbox.reach}
      </Link>
    </p>
  )
}
