import { randomUUID } from 'node:crypto'
import { eq } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { saved_views, user_events } from '../../db/identity/tables.ts'
import { startIdentity, type TestIdentity } from './support/harness.ts'

const PATH = '/v1/users/me/views'
let p: TestIdentity
let ada: Awaited<ReturnType<TestIdentity['firstAdmin']>>
beforeAll(async () => {
  p = await startIdentity()
  ada = await p.firstAdmin()
})
afterAll(() => p.stop())

type Person = ReturnType<TestIdentity['as']>
type View = { view_id: string; name: string; filters: Record<string, string>; version: number }
const broken = (name = 'Broken') => ({ list: 'operations', name, filters: { tab: 'failed', q: 'web' } })
const viewsOf = async (person: Person) => (await person.get(PATH)).body.items as View[]
const saved = async (person: Person, name?: string) => (await person.post(PATH, broken(name))).body as View

describe('a saved view', () => {
  it('is saved, listed by name, renamed, given other filters and deleted, each in the audit log', async () => {
    const eva = await p.newUser(ada)
    const made = await eva.post(PATH, broken('second'))
    expect(made).toMatchObject({ status: 201, body: { ...broken('second'), version: 1 }, headers: { etag: '"1"' } })
    const { view_id } = made.body as View
    await saved(eva, 'First')
    expect((await viewsOf(eva)).map(({ name }) => name)).toEqual(['First', 'second'])
    const renamed = await eva.patch(`${PATH}/${view_id}`, { name: 'Third' }, { headers: { 'if-match': '"1"' } })
    expect(renamed).toMatchObject({ status: 200, body: { name: 'Third', filters: broken().filters, version: 2 } })
    expect(renamed.headers.etag).toBe('"2"')
    const filters = { tab: 'all' }
    expect((await eva.patch(`${PATH}/${view_id}`, { filters })).body).toMatchObject({ name: 'Third', filters })
    expect((await eva.delete(`${PATH}/${view_id}`)).status).toBe(204)
    expect((await viewsOf(eva)).map(({ name }) => name)).toEqual(['First'])
    const rows = await p.deps.db
      .select({ body: user_events.body })
      .from(user_events)
      .where(eq(user_events.object, `view:${view_id}`))
    expect(rows.length).toBe(4)
  })

  it('is saved once per Idempotency-Key', async () => {
    const eva = await p.newUser(ada)
    const key = randomUUID()
    const first = await eva.post(PATH, broken(), { key })
    const again = await eva.post(PATH, broken(), { key })
    expect([again.status, again.body]).toEqual([201, first.body])
    expect(again.headers['idempotency-replayed']).toBe('true')
    expect((await eva.post(PATH, broken('Other'), { key })).body.code).toBe('idempotency_key_reused')
    expect((await viewsOf(eva)).length).toBe(1)
  })

  it('belongs to its owner alone: no one else lists, changes or deletes it, not even an administrator', async () => {
    const [eva, olga] = [await p.newUser(ada), await p.newUser(ada)]
    const { view_id } = await saved(eva)
    for (const other of [olga, ada]) {
      expect(await viewsOf(other)).toEqual([])
      for (const reply of [
        await other.patch(`${PATH}/${view_id}`, { name: 'Mine' }),
        await other.delete(`${PATH}/${view_id}`),
      ])
        expect(reply).toMatchObject({ status: 404, body: { category: 'not_found', code: 'not_found' } })
    }
    expect(await viewsOf(eva)).toMatchObject([broken()])
    expect((await p.as(undefined).get(PATH)).status).toBe(401)
  })

  it('that is shared is seen by the members of its group, changed by its owner alone, and stays in the group', async () => {
    const [eva, olga, kim] = [await p.newUser(ada), await p.newUser(ada), await p.newUser(ada)]
    const group = `g-${randomUUID().slice(0, 8)}`
    await ada.post('/v1/admin/groups', { group_key: group, name: group })
    const member = ({ user_id }: { user_id: string }) => `/v1/admin/groups/${group}/members/${user_id}`
    const foreign = await eva.post(PATH, { ...broken(), group })
    expect(foreign).toMatchObject({ status: 404, body: { category: 'not_found', code: 'not_found' } })
    for (const one of [eva, olga]) await ada.put(member(one))
    const made = await eva.post(PATH, { ...broken(), group })
    expect(made).toMatchObject({ status: 201, body: { group, owner: null } })
    const { view_id } = made.body as View
    const { body: me } = await eva.get('/v1/users/me')
    const listed = { ...broken(), view_id, group, owner: (me as { username: string }).username }
    expect(await viewsOf(olga)).toMatchObject([listed])
    expect([await viewsOf(kim), await viewsOf(ada)]).toEqual([[], []])
    expect((await olga.patch(`${PATH}/${view_id}`, { name: 'Mine' })).status).toBe(404)
    expect((await olga.delete(`${PATH}/${view_id}`)).status).toBe(404)
    // A name of a shared view is free for the others.
    await saved(olga)
    expect((await viewsOf(olga)).map(({ name }) => name)).toEqual(['Broken', 'Broken'])

    expect((await eva.patch(`${PATH}/${view_id}`, { group: null })).body).toMatchObject({ group: null })
    expect(await viewsOf(olga)).toHaveLength(1)
    expect((await eva.patch(`${PATH}/${view_id}`, { group })).body).toMatchObject({ group })
    expect(await viewsOf(olga)).toHaveLength(2)
    // Once either of the two has left the group, it is the owner's alone.
    await ada.delete(member(olga))
    expect(await viewsOf(olga)).toHaveLength(1)
    await ada.put(member(olga))
    await ada.delete(member(eva))
    expect(await viewsOf(olga)).toHaveLength(1)
    expect((await eva.patch(`${PATH}/${view_id}`, { name: 'Still mine' })).body).toMatchObject({
      name: 'Still mine',
      group,
    })
    await ada.delete(`/v1/admin/groups/${group}`)
    expect(await viewsOf(eva)).toMatchObject([{ name: 'Still mine', group: null }])
  })

  it.each([
    ['an unknown list', { ...broken(), list: 'plans' }],
    ['no name', { ...broken(), name: '' }],
    ['a blank name', { ...broken(), name: '  ' }],
    ['a long name', broken('x'.repeat(61))],
    ['an unknown member', { ...broken(), shared: true }],
    ['a group that cannot exist', { ...broken(), group: 'No group' }],
    ['a filter that is no text', { ...broken(), filters: { tab: 1 } }],
    ['a filter with a foreign name', { ...broken(), filters: { 'a b': '' } }],
    ['a long filter', { ...broken(), filters: { q: 'x'.repeat(2049) } }],
    ['many filters', { ...broken(), filters: Object.fromEntries([...'abcdefghijk'].map((name) => [name, ''])) }],
  ])('is refused with %s, and leaves no row', async (_what, body) => {
    const eva = await p.newUser(ada)
    const reply = await eva.post(PATH, body)
    expect(reply).toMatchObject({ status: 400, body: { category: 'validation_error', code: 'schema_violation' } })
    expect(await viewsOf(eva)).toEqual([])
  })

  it('has a name that is unique for its owner, whatever its case, even when tabs race', async () => {
    const eva = await p.newUser(ada)
    const replies = await Promise.all(
      ['Broken', 'broken', 'BROKEN', 'Broken'].map((name) => eva.post(PATH, broken(name))),
    )
    expect(replies.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409])
    expect(replies.filter(({ body }) => body.code === 'view_exists').length).toBe(3)
    const { view_id } = await saved(eva, 'Other')
    expect((await eva.patch(`${PATH}/${view_id}`, { name: 'bRoken' })).body.code).toBe('view_exists')
    expect((await eva.patch(`${PATH}/${view_id}`, { name: 'OTHER' })).status).toBe(200)
    // One letter with an accent, spelled in two ways.
    expect((await eva.post(PATH, broken('Caf\u00e9'))).status).toBe(201)
    expect((await eva.post(PATH, broken('Cafe\u0301'))).body.code).toBe('view_exists')
    expect((await eva.patch(`${PATH}/${view_id}`, { name: 'cafe\u0301' })).body.code).toBe('view_exists')
  })

  it('is one of at most fifty, even when tabs race for the last place', async () => {
    const eva = await p.newUser(ada)
    await p.deps.db
      .insert(saved_views)
      .values(
        Array.from({ length: 49 }, (_, at) => ({
          ...{ id: randomUUID(), user_id: eva.user_id, list: 'operations' as const, name: `view ${at}`, filters: {} },
        })),
      )
    const replies = await Promise.all(['a', 'b', 'c', 'd'].map((name) => eva.post(PATH, broken(name))))
    expect(replies.map(({ status }) => status).sort()).toEqual([201, 422, 422, 422])
    expect(replies.filter(({ body }) => body.code === 'too_many_views').length).toBe(3)
    expect((await viewsOf(eva)).length).toBe(50)
  })

  it('changes in one of two tabs; the other is told that it has an older version', async () => {
    const eva = await p.newUser(ada)
    const { view_id } = await saved(eva)
    const headers = { 'if-match': '"1"' }
    const replies = await Promise.all(
      ['Left', 'Right'].map((name) => eva.patch(`${PATH}/${view_id}`, { name }, { headers })),
    )
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 412])
    const [view] = await viewsOf(eva)
    expect(view).toMatchObject({ name: replies.find(({ status }) => status === 200)?.body.name, version: 2 })
    expect((await eva.delete(`${PATH}/${view_id}`, { headers })).body).toMatchObject({
      ...{ code: 'version_mismatch', current_version: 2 },
    })
  })
})
