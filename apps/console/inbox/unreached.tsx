import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { ownDestinationsQuery } from '../queries/me.ts'
import { tDecide } from '../words/decide.ts'

/** For people whom no message reaches: neither decisions nor warnings about their account. */
export const Unreached = () => {
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
