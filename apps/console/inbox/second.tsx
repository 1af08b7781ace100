import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { pendingChangesQuery } from '../queries/admin.ts'
import { currentUser } from '../session/token.ts'
import { tAdmin } from '../words/admin.ts'

/** For administrators: how many changes of accounts and rights wait for one of them besides their author. */
export const SecondNeeded = () => {
  const mine = currentUser()?.user_id
  const pending = useQuery(pendingChangesQuery()).data
  const open = (pending?.items ?? []).filter(({ requested_by }) => requested_by !== mine)
  if (open.length === 0) return null
  return (
    <p role="note">
      <Link to="/admin/changes" className="link">
        {(pending?.next_page_token ? tAdmin.change.waiting_more : tAdmin.change.waiting)(open.length)}
      </Link>
    </p>
  )
}
