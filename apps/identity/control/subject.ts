import type { Queryable } from '../../../db/client.ts'
import { getGroup, getUser, heldGrants, membershipsOf, membersOf, rolesOfGroup } from '../../../db/identity/queries.ts'
import type { ChangeKind } from '../../../db/identity/tables.ts'
import type { ChangeRequests, ChangeSubject } from '../../shared/contracts/identity/changes.ts'
import { digest } from '../../shared/data/digest.ts'

export type Asked = { [K in ChangeKind]: { kind: K; request: ChangeRequests[K] } }[ChangeKind]

/** The current subject of a change, and the roles that it gives. It differs after every change of the account. */
export const subjectOf = async (db: Queryable, { kind, request }: Asked): Promise<ChangeSubject> => {
  switch (kind) {
    case 'user.create': {
      const gives = (request.grants ?? []).map(({ role }) => role)
      return { ...NOBODY, type: 'user', name: request.username, gives: sorted(gives) }
    }
    case 'machine.credential': {
      const machine = await userSubject(db, request.machine_id)
      return { ...machine, gives: machine.roles }
    }
    case 'user.enable':
    case 'user.reset':
    case 'user.recover': {
      const user = await userSubject(db, request.user_id)
      return { ...user, gives: user.roles }
    }
    case 'member.add':
      return { ...(await userSubject(db, request.user_id)), gives: await rolesOfGroup(db, request.group_key) }
    case 'grant.create':
      return {
        ...(await (request.subject_type === 'user' ? userSubject : groupSubject)(db, request.subject_id)),
        gives: [request.role],
      }
  }
}

/** The digest of what a confirming administrator reviewed: the request and its subject. */
export const digestOf = (id: string, { kind, request }: Asked, subject: ChangeSubject): string =>
  digest({ id, kind, request, subject })

const sorted = (roles: readonly string[]) => [...new Set(roles)].sort()
const NOBODY = { id: null, status: null, version: null, roles: [], groups: [], members: [] }

const userSubject = async (db: Queryable, id: string): Promise<Omit<ChangeSubject, 'gives'>> => {
  const user = await getUser(db, id)
  if (!user) return { ...NOBODY, type: 'user', id, name: id }
  const [held, memberships] = await Promise.all([heldGrants(db, [id]), membershipsOf(db, [id])])
  return {
    type: 'user',
    id,
    name: user.username,
    status: user.status,
    version: user.version,
    roles: sorted(held.map(({ role }) => role)),
    groups: memberships.map(({ group_key }) => group_key),
    members: [],
  }
}

const groupSubject = async (db: Queryable, group_key: string): Promise<Omit<ChangeSubject, 'gives'>> => {
  const [group, members, roles] = await Promise.all([
    getGroup(db, group_key),
    membersOf(db, group_key),
    rolesOfGroup(db, group_key),
  ])
  const { name = group_key, version = null } = group ?? {}
  return { ...NOBODY, type: 'group', id: group_key, name, version, roles, members: [...members].sort() }
}
