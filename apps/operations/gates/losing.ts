import { isDeepStrictEqual } from 'node:util'
import { listInbox } from '../../../db/operations/gates/inbox.ts'
import type { GateRow, Vote } from '../../../db/operations/gates/rows.ts'
import { operations } from '../../../db/operations/tables/index.ts'
import type { GateFacts } from '../../../workflows/operation/rules/facts.ts'
import { missingVotes } from '../../../workflows/operation/rules/gates.ts'
import { allow } from '../../shared/auth/http.ts'
import type { Principal } from '../../shared/auth/principals.ts'
import { type Losing, LosingGates, LosingQuery } from '../../shared/contracts/operations/gates.ts'
import { pick, pluck } from '../../shared/data/pick.ts'
import { AppError, unavailable } from '../../shared/errors.ts'
import { routes } from '../../shared/http/routes.ts'
import type { Uses } from '../deps.ts'
import { placesForAll, visibleSql } from '../policies/authority.ts'
import { approvalsOf, gateFacts, lostAmong, type Measure } from '../policies/footing.ts'
import { couldVote, delegatorsOf } from './view.ts'

const MOST = 200

/** What open gates would lose if rights were taken away: shown before the change, which identity makes. */
export const losingRoutes = routes<Uses<'clock' | 'db' | 'lookback_s' | 'trust'>>('gates', (app, { deps }) => {
  app.get('/v1/gates/losing', {
    operationId: 'listLosingGates',
    summary: 'List open gates that a removal of rights would touch',
    description: `Returns the waiting gates that would lose a voter or a vote if a person (\`user_id\`) were disabled or left a \`group\`, if the \`group\` alone were deleted, or if the grant \`grant_id\` ended. Looks at the ${MOST} gates with the nearest deadlines.`,
    querystring: LosingQuery,
    response: { 200: LosingGates },
    // Groups and grants of people show through the answer, and it costs much.
    preHandler: allow('identity:admin', { kind: 'R' }),
    handler: async ({ caller, query }) => {
      const { user_id, group, grant_id } = query
      if (grant_id !== undefined && (user_id !== undefined || group !== undefined))
        throw new AppError('validation_error', 'schema_violation', 'grant_id stands alone.')
      if (user_id === undefined && group === undefined && grant_id === undefined) return { items: [] }
      const people = await deps.trust.approvers.listAll()
      if (!people) throw unavailable('Who may decide cannot be read in full right now.')
      const later = people.map((person) => without(person, query))
      // Most changes concern no one who may decide anything.
      if (isDeepStrictEqual(later, people)) return { items: [] }
      const rows = await listInbox(deps.db, { where: visibleSql(caller, operations), after: undefined, limit: MOST })
      const now = deps.clock.now().toISOString()
      const items = await Promise.all(
        rows.map(async (row) => {
          const places = await placesForAll(deps.db, people, row.operation.resource_ids)
          return losingOf(row, people, later, { places, now, lookback_s: deps.lookback_s })
        }),
      )
      return { items: items.flatMap((item) => item ?? []) }
    },
  })
})

/** A person without the rights that would be taken away. */
const without = (person: Principal, { user_id, group, grant_id }: LosingQuery): Principal => {
  if (grant_id !== undefined) return { ...person, grants: person.grants.filter(({ id }) => id !== grant_id) }
  if (user_id !== undefined && user_id !== person.user.id) return person
  if (group === undefined) return { ...person, user: { ...person.user, status: 'DISABLED' } }
  return {
    ...person,
    grants: person.grants.filter(({ via_group_key }) => via_group_key !== group),
    group_keys: person.group_keys.filter((key) => key !== group),
    memberships: person.memberships.filter(({ group_key }) => group_key !== group),
  }
}

/** The gate as it would be; undefined if it would lose none. */
const losingOf = (
  row: GateRow,
  before: readonly Principal[],
  later: readonly Principal[],
  measure: Measure,
): Losing | undefined => {
  const [had, has] = [before, later].map((people) => votersOf(row, people, measure)) as [Principal[], Principal[]]
  const counted = approvalsOf(row)
  const gone = lostWith(row, counted, before, measure)
  const lost = lostWith(row, counted, later, measure).filter(
    ({ user_id }) => !gone.some((vote) => vote.user_id === user_id),
  )
  if (lost.length === 0 && has.length === had.length) return undefined
  const left = gateFacts(row).votes.filter(({ user_id }) => !lost.some((vote) => vote.user_id === user_id))
  const isEnough = (votes: GateFacts['votes'], people: readonly Principal[]) => {
    const free = freeAmong(votes, people)
    const missing = missingVotes({ policy: row.gate.policy, votes })
    const ofGroup = (group: string) => free.filter(({ group_keys }) => group_keys.includes(group)).length
    return free.length >= missing.count && missing.groups.every(({ group, count }) => ofGroup(group) >= count)
  }
  return {
    ...pick(row.gate, 'operation_id', 'gate_id', 'question'),
    operation_title: row.operation.title,
    voters_left: freeAmong(left, has).length,
    votes_lost: lost.length,
    blocked: isEnough(gateFacts(row).votes, had) && !isEnough(left, has),
  }
}

const lostWith = (row: GateRow, votes: readonly Vote[], people: readonly Principal[], measure: Measure) => {
  const others = [...pluck(votes, 'user_id'), ...row.gate.delegations.map(({ by }) => by.id)]
  const asked: [string, Principal | undefined][] = others.map((id) => [id, undefined])
  return lostAmong(row, votes, new Map([...asked, ...people.map((one) => [one.user.id, one] as const)]), measure)
}

/** Those who have not voted in this round. */
const freeAmong = (votes: readonly { user_id: string }[], people: readonly Principal[]): Principal[] => {
  const voted = new Set(pluck(votes, 'user_id'))
  return people.filter(({ user }) => !voted.has(user.id))
}

const votersOf = (row: GateRow, people: readonly Principal[], measure: Measure): Principal[] => {
  const delegators = delegatorsOf(row, people)
  return people.filter((person) => couldVote(person, row, measure, delegators))
}
