import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Difference } from '../../apps/shared/contracts/topology/difference.ts'
import { type Catalog, seedRegion, startCatalog } from './support/platform.ts'

let c: Catalog

const generic = { type_key: 'infra.generic', desired_state: { provider: 'test', kind: 'thing' } }
const record = (resource_id: string, parent_id?: string) =>
  c.as('ada').record({ resource_id, ...generic, name: resource_id, ...(parent_id && { parent_id }) })
const versionOf = async (id: string): Promise<number> => (await c.as('ada').get(`/v1/resources/${id}`)).body.version
const change = async (id: string, changes: Record<string, unknown>): Promise<number> =>
  (await c.result(id, { expected_version: await versionOf(id), changes })).status
const parentOf = async (id: string): Promise<string | null> =>
  (await c.as('ada').get(`/v1/resources/${id}`)).body.parent_id
const move = async (id: string, to: string): Promise<number> => {
  const from = await parentOf(id)
  const gone = from === null ? [] : [{ op: 'remove', type_key: 'contained_in', target_id: from }]
  return change(id, { relationship_changes: [...gone, { op: 'add', type_key: 'contained_in', target_id: to }] })
}

/** A time between what has been done and what comes next. */
const tick = async (): Promise<string> => {
  c.wait(200)
  const at = new Date(Date.parse(c.deps.clock.now().toISOString()) - 100).toISOString()
  c.wait(200)
  return at
}

const ask = async (
  id: string,
  from: string,
  to: string,
  as: 'vic' | 'far' = 'vic',
  query = '',
): Promise<Difference> => {
  const reply = await c.as(as).get(`/v1/resources/${id}/difference?from=${from}&to=${to}${query}`)
  expect(reply.status, reply.text).toBe(200)
  return reply.body
}
const kinds = ({ items }: Difference) => Object.fromEntries(items.map(({ resource_id, kind }) => [resource_id, kind]))

beforeAll(async () => {
  c = await startCatalog()
})
afterAll(() => c.stop())

describe('the difference of a subtree between two times', () => {
  it('names added, removed, changed and moved resources, and who changed them', async () => {
    await record('top')
    await record('a', 'top')
    await record('b', 'top')
    await record('a1', 'a')
    await record('a2', 'a')
    await record('gone', 'a')
    await record('outside')
    await record('comes', 'outside')
    const before = await tick()
    await record('new', 'b')
    await change('a1', { observed_state_patch: { attributes: { serial: 'up' } } })
    expect(await move('a2', 'b')).toBe(200)
    await change('gone', { lifecycle_status: 'retired' })
    expect(await move('comes', 'a')).toBe(200)
    expect(await move('b', 'outside')).toBe(200)
    const after = await tick()
    await change('a1', { observed_state_patch: { attributes: { serial: 'down' } } })

    const difference = await ask('top', before, after)
    expect(kinds(difference)).toEqual({
      a1: 'changed',
      a2: 'moved_out',
      b: 'moved_out',
      comes: 'moved_in',
      gone: 'removed',
    })
    expect(kinds(await ask('outside', before, after))).toEqual({
      a2: 'moved_in',
      b: 'moved_in',
      comes: 'moved_out',
      new: 'added',
    })
    expect(difference.items[0]).toMatchObject({
      version_from: 1,
      version_to: 2,
      changes: [{ path: '/observed_state/attributes', after: { serial: 'up' } }],
      actors: ['svc:demo-control-plane'],
    })
    expect(difference.items[0]?.operation_ids).toHaveLength(1)
    // Later changes do not affect the answer.
    const { as_of: _, ...first } = difference
    expect(await ask('top', before, after)).toMatchObject(first)
    expect((await ask('top', before, new Date(Date.parse(before) + 1).toISOString())).items).toEqual([])
  })

  it('names relationships that were opened or closed', async () => {
    await record('svc')
    await record('db')
    const before = await tick()
    await change('svc', { relationship_changes: [{ op: 'add', type_key: 'depends_on', target_id: 'db' }] })
    const after = await tick()
    const { items } = await ask('svc', before, after)
    expect(items[0]?.relationships).toEqual([{ op: 'added', type_key: 'depends_on', to_id: 'db' }])
  })

  it('names relationships that their other end changed, and those with other properties', async () => {
    for (const id of ['near', 'far-end']) await record(id)
    const edge = { type_key: 'refers_to', direction: 'in', target_id: 'near' }
    const changed = (op: string, fields: string[]) =>
      change('far-end', { relationship_changes: [{ op, ...edge, properties: { fields } }] })
    const times = [await tick()]
    for (const act of [
      () => changed('add', ['a']),
      () => changed('update', ['b']),
      () => change('far-end', { lifecycle_status: 'retired' }),
    ]) {
      expect(await act()).toBe(200)
      times.push(await tick())
    }
    for (const [at, op] of ['added', 'updated', 'removed'].entries()) {
      const { items } = await ask('near', times[at] as string, times[at + 1] as string)
      expect(items).toMatchObject([
        {
          ...{ resource_id: 'near', kind: 'changed', version_from: 1, version_to: 1, changes: [] },
          relationships: [{ op, type_key: 'refers_to', to_id: 'far-end' }],
          actors: ['svc:demo-control-plane'],
        },
      ])
      expect(items[0]?.operation_ids).toHaveLength(1)
      expect(Date.parse(items[0]?.last_change_at ?? '')).toBeGreaterThan(Date.parse(times[at] as string))
    }
    expect((await ask('near', times[0] as string, times[3] as string)).items).toEqual([])
  })

  it('is read in pages that keep the time of the first', async () => {
    await record('many')
    const before = await tick()
    for (let i = 0; i < 5; i++) await record(`many-${i}`, 'many')
    c.wait(1000)
    const found: string[] = []
    let token = ''
    do {
      const reply = await c.as('vic').get(`/v1/resources/many/difference?from=${before}&page_size=2${token}`)
      expect(reply.status, reply.text).toBe(200)
      found.push(...reply.body.items.map(({ resource_id }: { resource_id: string }) => resource_id))
      token = reply.body.next_page_token === null ? '' : `&page_token=${reply.body.next_page_token}`
      if (found.length === 2) await record('many-5', 'many')
    } while (token !== '')
    expect(found).toEqual(['many-0', 'many-1', 'many-2', 'many-3', 'many-4'])
  })

  it('hides resources that the reader may not see, and refuses invalid times', async () => {
    await seedRegion(c, 'eu1', 0)
    const before = await tick()
    await record('hidden', 'eu1-a-web')
    const after = await tick()
    expect(kinds(await ask('eu1', before, after))).toEqual({ hidden: 'added' })
    const far = await c.as('far').get(`/v1/resources/eu1/difference?from=${before}&to=${after}`)
    expect(far.status).toBe(404)
    for (const [from, to, status] of [
      [after, before, 400],
      ['2001-01-01T00:00:00Z', after, 410],
      [before, '2100-01-01T00:00:00Z', 400],
      ['2026-02-30T00:00:00Z', after, 400],
    ] as const) {
      const reply = await c.as('vic').get(`/v1/resources/eu1/difference?from=${from}&to=${to}`)
      expect([reply.status, from, to]).toEqual([status, from, to])
    }
    const ahead = await c.as('vic').get('/v1/resources/eu1/difference?from=2100-01-01T00:00:00Z')
    expect(ahead.body).toMatchObject({ code: 'time_in_future', violations: [{ pointer: '/querystring/from' }] })
  })

  it('calls a resource removed that came and went between the times', async () => {
    await record('there')
    const before = await tick()
    await record('brief', 'there')
    await change('brief', { lifecycle_status: 'retired' })
    const after = await tick()
    expect(kinds(await ask('brief', before, after))).toEqual({ brief: 'removed' })
  })

  it('matches a comparison of every resource at both times', { timeout: 240_000 }, async () => {
    let run = 0
    const step = fc.oneof(
      fc.record({ do: fc.constant('new' as const), at: fc.nat(9) }),
      fc.record({ do: fc.constant('move' as const), who: fc.nat(9), at: fc.nat(9) }),
      fc.record({ do: fc.constant('change' as const), who: fc.nat(9), value: fc.nat(3) }),
      fc.record({ do: fc.constant('retire' as const), who: fc.nat(9) }),
      fc.record({ do: fc.constant('time' as const) }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 12, maxLength: 25 }), async (steps) => {
        run += 1
        const ids = [`r${run}`]
        await record(ids[0] as string)
        const times = [await tick()]
        const pick = (n: number) => ids[n % ids.length] as string
        for (const one of steps) {
          // Refusals (cycles, retired resources, resources that still hold others) are part of it.
          if (one.do === 'time') times.push(await tick())
          else if (one.do === 'move') await move(pick(one.who), pick(one.at))
          else if (one.do === 'change')
            await change(pick(one.who), { observed_state_patch: { attributes: { n: one.value } } })
          else if (one.do === 'retire') await change(pick(one.who), { lifecycle_status: 'retired' })
          else {
            const id = `r${run}-${ids.length}`
            const body = { resource_id: id, ...generic, name: id, parent_id: pick(one.at) }
            if ((await c.as('ada').post('/v1/resources?mode=record_only', body)).status === 201) ids.push(id)
          }
        }
        times.push(await tick())
        const states = []
        for (const at of times) states.push(await stateAt(ids, at))
        for (const [i, was] of states.entries())
          for (const [j, now] of states.entries()) {
            if (i >= j) continue
            const [from, to] = [times[i] as string, times[j] as string]
            for (const root of ids.slice(0, 3))
              expect(kinds(await ask(root, from, to)), `${root} ${JSON.stringify(steps)}`).toEqual(
                compared(root, ids, was, now),
              )
          }
      }),
      { numRuns: 4, seed: 5 },
    )
  })
})

type State = Map<string, { version: number; parent_id: string | null; retired: boolean }>

/** The state of every resource at a time, from its own read. */
const stateAt = async (ids: readonly string[], at: string): Promise<State> => {
  const state: State = new Map()
  for (const id of ids) {
    const { status, body } = await c.as('ada').get(`/v1/resources/${id}?at=${at}`)
    const { version, parent_id, lifecycle_status } = body
    if (status === 200) state.set(id, { version, parent_id, retired: lifecycle_status === 'retired' })
  }
  return state
}

const isBelow = (root: string, id: string, state: State): boolean => {
  const one = state.get(id)
  if (one === undefined) return false
  if (id === root) return true
  return !one.retired && one.parent_id !== null && isBelow(root, one.parent_id, state)
}

const compared = (root: string, ids: readonly string[], was: State, now: State): Record<string, string> => {
  const found: Record<string, string> = {}
  for (const id of ids) {
    const [before, after] = [was.get(id), now.get(id)]
    const [was_in, is_in] = [isBelow(root, id, was), isBelow(root, id, now)]
    if ((!was_in && !is_in) || !after) continue
    if (after.retired && !before?.retired) found[id] = 'removed'
    else if (!before) found[id] = 'added'
    else if (was_in !== is_in) found[id] = is_in ? 'moved_in' : 'moved_out'
    else if (before.version !== after.version) found[id] = before.parent_id === after.parent_id ? 'changed' : 'moved'
  }
  return found
}
