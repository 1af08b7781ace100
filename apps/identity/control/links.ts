import { timestampDate } from '@bufbuild/protobuf/wkt'
import type { Client } from '@connectrpc/connect'
import type { Tx } from '../../../db/client.ts'
import { lockUser } from '../../../db/identity/queries.ts'
import type { UserRow } from '../../../db/identity/tables.ts'
import { NOW } from '../../../db/rows.ts'
import type { Credential } from '../../shared/contracts/gen/auth_pb.ts'
import { throwFromRpc, withRequestId } from '../../shared/rpc/client.ts'
import type { Uses } from '../deps.ts'
import { refuseHalf, throwIf } from '../rules.ts'
import type { By } from './changes.ts'

export type LinkMaker = { credential: Pick<Client<typeof Credential>, 'createEnrolmentToken'> }
type Asked = { userId: string; changeId: string; half?: 1 | 2; onlyIfNoPassword?: true }

/**
 * Has credential make a link, or half of one, which ends the older ones. The account is locked until the transaction
 * ends, so both agree on the newest. A link that a newer one has replaced is refused.
 */
export const makeLink = async ({ credential }: LinkMaker, tx: Tx, asked: Asked, request_id = '') => {
  const user = await lockUser(tx, asked.userId)
  throwIf(refuseHalf(user !== undefined && isNewest(user, asked.changeId)))
  return credential.createEnrolmentToken({ ...asked, endsOlder: true }, withRequestId(request_id))
}

/** An enrolment token, or half of one, as the person receives it. */
export const linkOf = async (deps: Uses<'config' | 'credential' | 'db'>, asked: Asked, request_id: string) => {
  const making = deps.db.transaction((tx) => makeLink(deps, tx, asked, request_id))
  const { enrolmentToken, expiresAt } = await making.catch(throwFromRpc('credential'))
  return {
    token: enrolmentToken,
    url: `${deps.config.GATEWAY__HTTP__PUBLIC_ORIGIN}/enrol#${enrolmentToken}`,
    expires_at: (expiresAt ? timestampDate(expiresAt) : new Date()).toISOString(),
  }
}

/**
 * The effect of a new link on an account. Its creator could use it, and votes of the account are judged by that. A link
 * that one administrator sees whole makes the account theirs until the person renews it.
 */
export const handedOut = (by: By) => {
  const { link, requested_by, confirmed_by } = by
  // Neither two administrators nor the machine made it.
  const shown = confirmed_by === null && requested_by !== 'system'
  return { ...resetBy(by), reset_link: shown ? shownLink(link) : link, ...(shown && { link_shown: true }) }
}

/** By the prefix such a link equals no id. Builds that look for ids alone let it renew no account. */
const shownLink = (link: string): string => `shown:${link}`

/** Whether this is the account's newest link, whoever saw it. */
export const isNewest = ({ reset_link }: Pick<UserRow, 'reset_link'>, link: string): boolean =>
  reset_link === link || reset_link === shownLink(link)

/** A reset that gives no link: no older one of the account opens anything. */
export const resetBy = ({ requested_by, confirmed_by }: By) => ({
  reset_at: NOW,
  reset_by: requested_by,
  reset_confirmed_by: confirmed_by,
  reset_link: null as string | null,
})
