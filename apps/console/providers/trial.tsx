import { useQuery } from '@tanstack/react-query'
import type { ProviderTrial } from '../../shared/contracts/session/sso.ts'
import { trialQuery } from '../queries/admin.ts'
import { Card } from '../ui/card.tsx'
import { Failure, ProblemText } from '../ui/failure.tsx'
import { Facts } from '../values/facts.tsx'
import { TimeText } from '../values/time.tsx'
import { tAdmin } from '../words/admin.ts'

const words = tAdmin.provider.trial

/** What the platform would make of the person who has just signed in at the provider. */
export const Trial = ({ trial }: { trial: string }) => {
  const read = useQuery(trialQuery(trial))
  if (read.isError) return <Failure error={read.error} retry={() => void read.refetch()} />
  if (!read.data) return null
  const { provider, refusal, claims } = read.data
  return (
    <Card title={words.title} note={provider}>
      <div role="status" className="flex flex-col gap-2 p-4">
        <p className="text-muted">{words.about}</p>
        {refusal ? <ProblemText problem={refusal} /> : null}
      </div>
      <Facts className="p-4" facts={[...effectOf(read.data), ...(claims ? claimsOf(claims) : [])]} />
    </Card>
  )
}

const listOf = (names: readonly string[]) => names.join(', ') || words.none

const effectOf = ({ outcome, account, groups, roles, second_factor, refusal }: ProviderTrial) => {
  const result = [words.result, words.outcome[outcome](account ?? '')] as const
  if (refusal) return [result]
  return [
    result,
    [words.groups, listOf(groups)],
    [words.roles, listOf(roles)],
    [words.factor, second_factor ? words.proved : words.asked],
  ] as const
}

const claimsOf = (claims: NonNullable<ProviderTrial['claims']>) =>
  [
    [words.subject, <code key="subject">{claims.subject}</code>],
    [words.username, claims.username || words.none],
    [
      words.email,
      claims.email === null || claims.email_verified ? (claims.email ?? words.none) : words.unverified(claims.email),
    ],
    [words.there, claims.groups ? listOf(claims.groups) : words.elsewhere],
    [words.methods, listOf(claims.methods)],
    [words.auth_time, claims.auth_time === null ? words.none : <TimeText key="auth_time" at={claims.auth_time} />],
    [words.directory_id, claims.directory_id ?? words.none],
  ] as const
