import { timestampDate } from '@bufbuild/protobuf/wkt'
import { sql } from 'drizzle-orm'
import type { UserRow } from '../../../db/identity/tables.ts'
import type { Uses } from '../deps.ts'
import type { By } from './changes.ts'

/** An enrolment token, or half of one, as the person receives it. */
export const linkView = (
  deps: Uses<'config'>,
  made: { enrolmentToken: string; expiresAt?: Parameters<typeof timestampDate>[0] | undefined },
) => ({
  token: made.enrolmentToken,
  url: `${deps.config.GATEWAY__HTTP__PUBLIC_ORIGIN}/enrol#${made.enrolmentToken}`,
  expires_at: (made.expiresAt ? timestampDate(made.expiresAt) : new Date()).toISOString(),
})

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
  reset_at: sql`clock_timestamp()` as never,
  reset_by: requested_by,
  reset_confirmed_by: confirmed_by,
  reset_link: null as string | null,
})
