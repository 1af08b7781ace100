import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { knownUser, linkExternal } from '../../apps/identity/federation/external.ts'
import { enrolHere } from '../../apps/identity/users/bootstrap.ts'
import { principalOf } from '../../apps/shared/auth/principals.ts'
import type { Provider } from '../../apps/shared/auth/providers.ts'
import { joinHalves } from '../../apps/shared/contracts/client/enrolment.ts'
import { Identity } from '../../apps/shared/contracts/gen/auth_pb.ts'
import { createRpcClient } from '../../apps/shared/rpc/client.ts'
import { startIdentity, type TestIdentity } from './support/harness.ts'

/**
 * One administrator alone, against an installation with three: she may use all that the API lets her, through every
 * account that she can sign in to. The others are honest: they request changes for honest people, and confirm none of
 * hers.
 */
const SENSITIVE = ['approver', 'operator', 'admin']
const ROLES = [...SENSITIVE, 'viewer', 'planner']
const STEPS = 120
/** Acts by their number: promising ones come more often. */
const LIKELY = [0, 0, 0, 1, 2, 3, 4, 5, 6, 6, 6, 7, 8, 9, 9]

type As = ReturnType<TestIdentity['as']>
let p: TestIdentity
let hers: Map<string, As>
let honest: As[]
let people: string[]
/** Accounts of hers that honest administrators take over, one in each walk. */
let pawns: string[]
const groups = ['red', 'blue']
const outcomes = new Set<string>()

/** Its own small generator, so that a failing walk can be repeated. */
const randomOf = (seed: number) => {
  let state = seed
  return (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

beforeAll(async () => {
  p = await startIdentity()
  // The provider at which she has identities of her own.
  p.deps.providers.get = (id) => (id === 'corp' ? ({ id } as Provider) : undefined)
  const eve = await p.firstAdmin('eve')
  // Before there were two, she created accounts whose links she saw, one of them an administrator.
  const made = [await p.newUser(eve, ['approver', 'admin'], 'puppet'), await p.newUser(eve, ['viewer'], 'shell')]
  for (const pawn of [1, 2, 3]) made.push(await p.newUser(eve, ['viewer'], `pawn-${pawn}`))
  pawns = made.slice(2).map(({ user_id }) => user_id)
  for (const { token } of made) await p.enrol(token)
  const open = await p.newUser(eve, [], 'open')
  honest = [await p.secondAdmin('bob'), await p.secondAdmin('carl')]
  await p.enrol(open.token)
  // And one that she obtained honestly, without rights: no administrator saw its link.
  const { token } = await enrolHere(p.bootstrap, 'alias', ['viewer'])
  await p.enrol(token)
  const alias = p.as(token.split('.')[1])
  hers = new Map([eve, ...made, alias, open].map((account) => [account.user_id ?? '', account]))
  people = [...hers.keys(), ...honest.map(({ user_id }) => user_id ?? '')]
  for (const group_key of groups) await eve.post('/v1/admin/groups', { group_key, name: group_key })
})
afterAll(() => p.stop())

type Change = { id: string; digest: string; status: string; requested_by: string; user_id: string | null }
const pendingOf = async (admin: As): Promise<Change[]> =>
  (await admin.get('/v1/admin/changes?page_size=500')).body.items as Change[]

/** An identity of hers for each account: where it is linked, she can sign in, whoever knows the password. */
const subjectOf = (user_id: string) => ({ providerId: 'corp', subject: `eve-${user_id}` })
const openTo = async (): Promise<string[]> => {
  const linked = await Promise.all(people.map((id) => knownUser(p.deps.db, subjectOf(id))))
  return [...new Set([...hers.keys(), ...linked.flatMap((user) => user?.id ?? [])])]
}
/** Honest administrators renew an account of hers and give it the role; from now on its person alone has the password. */
const takeOver = async (user_id: string) => {
  const [one, other] = honest as [As, As]
  await one.post(`/v1/admin/users/${user_id}/enable`, { reason: 'x' })
  const asked = await one.post(`/v1/admin/users/${user_id}/enrolment-token`)
  const { id } = asked.body.change as { id: string }
  expect((await p.confirm(other, id)).status).toBe(200)
  expect((await p.enrol(await p.tokenOfHalves([one, other], id))).status).toBe(204)
  hers.delete(user_id)
  const granted = await one.post('/v1/admin/grants', { subject_type: 'user', subject_id: user_id, role: 'approver' })
  expect((await p.confirm(other, (granted.body.change as { id: string }).id)).status).toBe(200)
  expect(await power(user_id)).toContain('approver')
}

/** The rights with which one account can decide: its sensitive roles, unless it must be renewed first. */
const power = async (user_id: string): Promise<string[]> => {
  const client = createRpcClient(Identity, {
    url: p.rpc_url,
    signer: p.services.signer('operations'),
    audience: 'identity-internal',
  })
  const { principal } = await client.getPrincipal({ userId: user_id })
  if (!principal) return []
  const { roles, renewal_required } = principalOf(principal)
  return renewal_required ? [] : roles.filter((role) => SENSITIVE.includes(role))
}

describe('one administrator alone', () => {
  it.each([1, 7, 23])(
    'gains no approver, operator or admin for an account of hers (walk %i) (ASVS 6.4.4)',
    async (seed) => {
      const below = randomOf(seed)
      const one = <T>(list: readonly T[]): T => list[below(list.length)] as T
      const before = new Map<string, string[]>()
      for (const id of people) before.set(id, await power(id))
      const halves = new Map<string, string[]>()
      const eve = [...hers.values()][0] as As
      let names = 0

      const grant = (admin: As, to: string[]) => {
        const group = below(3) === 0
        const subject = group
          ? { subject_type: 'group', subject_id: one(groups) }
          : { subject_type: 'user', subject_id: one(to) }
        return admin.post('/v1/admin/grants', { ...subject, role: one(ROLES) })
      }
      const acts = [
        (by: As) => grant(by, people),
        (by: As) => by.put(`/v1/admin/groups/${one(groups)}/members/${one(people)}`),
        (by: As) => by.delete(`/v1/admin/groups/${one(groups)}/members/${one(people)}`),
        async (by: As) => {
          const made = await by.post('/v1/admin/users', {
            username: `n-${seed}-${names++}`,
            grants: [{ role: one(ROLES) }],
          })
          expect(made.body.enrolment).toBeUndefined()
          return made
        },
        async (by: As) => {
          const path = one(['enrolment-token', 'recovery'])
          const reset = await by.post(`/v1/admin/users/${one(people)}/${path}`)
          expect(reset.body.enrolment).toBeUndefined()
          return reset
        },
        (by: As) =>
          by.post(`/v1/admin/users/${one([...hers.keys()].slice(3))}/${one(['disable', 'enable'])}`, { reason: 'x' }),
        async (by: As) => {
          const { id, digest } = one((await pendingOf(honest[0] as As)).slice(0, below(2) ? 3 : 500)) ?? {
            id: 'none',
            digest: 'x',
          }
          return by.post(`/v1/admin/changes/${id}/confirm`, { digest })
        },
        async (by: As) => {
          const { id = 'none' } =
            one((await pendingOf(honest[0] as As)).filter(({ user_id }) => user_id !== null)) ?? {}
          const got = await by.post(`/v1/admin/changes/${id}/half`)
          if (got.status === 200) {
            const known = [...(halves.get(id) ?? []), (got.body.half as { token: string }).token]
            halves.set(id, known)
            for (const [a, b] of known.flatMap((x) => known.map((y) => [x, y] as const))) {
              const token = joinHalves(a, b)
              if (token && (await p.enrol(token)).status === 204) throw new Error('she holds both halves of a link')
            }
          }
          return got
        },
        // No single half or forged token that she tries opens an account.
        async () => {
          const half = one([...halves.values()].flat()) ?? 'h1.x'
          const got = await p.enrol(half.replace(/^h\d/, 'e1'))
          expect(got.status).not.toBe(204)
          return got
        },
        // She links an identity of hers to an account in which she can sign in.
        async () => {
          const userId = one([...hers.keys()])
          const linked = await linkExternal(p.deps, { userId, ...subjectOf(userId), externalId: '' }, 'walk')
          return { status: 'user' in linked ? 200 : 403 }
        },
      ]
      const pawn = pawns.pop() ?? ''
      const at = 20 + below(STEPS - 40)
      for (let step = 0; step < STEPS; step++) {
        if (step === at) await takeOver(pawn)
        const act = one(LIKELY)
        const honestly = below(6) === 0 && act === 0
        const by = honestly ? one(honest) : below(3) > 0 ? eve : one([...hers.values()])
        const { status } = honestly
          ? await by.post('/v1/admin/grants', {
              subject_type: 'user',
              subject_id: one(honest).user_id,
              role: one(ROLES),
            })
          : await (acts[act] as (by: As) => Promise<{ status: number }>)(by)
        expect(status).toBeLessThan(500)
        outcomes.add(`${act} ${status}`)
        if (step % 6 === 0 || step === STEPS - 1)
          for (const id of await openTo())
            for (const role of await power(id))
              expect(before.get(id), `step ${step}: ${role} for an account of hers`).toContain(role)
      }
    },
    120_000,
  )
})

it('made progress on these walks: changes were requested, and refused without a second administrator', () => {
  expect([...outcomes]).toEqual(expect.arrayContaining(['0 202', '3 202', '4 202', '6 403', '9 200']))
})

it('can be joined by the owner of the machine', async () => {
  const { token } = await enrolHere(p.bootstrap, 'dora', ['admin', 'approver'])
  expect((await p.enrol(token)).status).toBe(204)
  expect(await power(token.split('.')[1] ?? '')).toEqual(['admin', 'approver'])
})
