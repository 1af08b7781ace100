import { timestampDate } from '@bufbuild/protobuf/wkt'
import { sql } from 'drizzle-orm'
import type { Uses } from '../deps.ts'
import type { By } from './changes.ts'

/** An enrolment token, or a half of one, as the person gets it. */
export const linkView = (
  deps: Uses<'config'>,
  made: { enrolmentToken: string; expiresAt?: Parameters<typeof timestampDate>[0] | undefined },
) => ({
  token: made.enrolmentToken,
  url: `${deps.config.GATEWAY__HTTP__PUBLIC_ORIGIN}/enrol#${made.enrolmentToken}`,
  expires_at: (made.expiresAt ? timestampDate(made.expiresAt) : new Date()).toISOString(),
})

/**
 * What a new link does to an account. Whoever made it could use it: votes of the account are measured by that. A link
 * that one administrator sees whole makes the account hers until the person renews it.
 */
export const handedOut = ({ requested_by, confirmed_by, link }: By) => ({
  reset_at: sql`clock_timestamp()` as never,
  reset_by: requested_by,
  reset_confirmed_by: confirmed_by,
  reset_link: link,
  ...(link === null && { link_shown: true }),
})
