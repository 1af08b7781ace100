import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Catalog, hostOf, seedRegion, startCatalog } from './support/platform.ts'

/** The metrics of changed resources beside the rest, as a voter at a gate reads them. */
let c: Catalog
let now: number
beforeAll(async () => {
  c = await startCatalog()
  await seedRegion(c, 'eu1', 4)
  await c.as('ada').record({ ...hostOf('plain', 'eu1-a-web'), type_key: 'infra.host' })
  now = c.deps.clock.now().getTime()
})
afterAll(() => c.stop())

const MIN = 60_000
const ago = (ms: number) => new Date(now - ms).toISOString()
const observed = async (id: string, ms: number, attributes: Record<string, unknown>, more = {}) => {
  const { status, text } = await c.observe(id, { observed_at: ago(ms), attributes, ...more })
  expect([status, text]).toEqual([200, expect.any(String)])
}
const compare = async (resource_ids: string[], rest_ids: string[], started = 10 * MIN, ended = 5 * MIN, more = {}) => {
  const asked = { resource_ids, rest_ids, started_at: ago(started), ended_at: ago(ended), ...more }
  return (await c.internally('POST', '/health:compare', asked, { service: 'operations' })).body.metrics
}

it('are medians that equal SQL over the observations, in the three spans', async () => {
  let seed = 7
  const next = () => {
    seed = (seed * 16_807) % 2_147_483_647
    return (seed % 10_000) / 100
  }
  for (const id of ['eu1-web-01', 'eu1-web-02', 'eu1-web-03'])
    for (let i = 0; i < 9; i++)
      await observed(id, i * 2 * MIN + 1000, { errors_pct: next(), p95_ms: next(), queue: 4, release: '2.4.0' })
  // Late, of another check, of a type without metrics, not a number, and before any of the spans.
  await observed('eu1-web-01', 4.5 * MIN, { p95_ms: 77.25 }, { check_key: 'probe' })
  await observed('plain', MIN, { p95_ms: 9999 })
  await observed('eu1-web-02', MIN / 2, { p95_ms: 'slow' })
  await observed('eu1-web-01', 90 * MIN, { p95_ms: 9999 })
  const kept = await c.rows<{ metrics: unknown }>(`select metrics from catalog.observation_history h
    join catalog.resource r using (rid) where r.resource_id in ('eu1-web-01', 'plain') order by h.id limit 11`)
  expect(kept[0]).toEqual({ metrics: { errors_pct: expect.any(Number), p95_ms: expect.any(Number) } })
  expect(kept.slice(-2)).toEqual([{ metrics: { p95_ms: 77.25 } }, { metrics: null }])

  // Another type may give the same key another meaning.
  await c.rows(`update catalog.observation_history h set metrics = '{"p95_ms": 9999}' from catalog.resource r
    where r.rid = h.rid and r.resource_id = 'plain'`)
  const metrics = await compare(['eu1-web-01'], ['eu1-web-02', 'eu1-web-03', 'plain', 'unknown'])
  expect(metrics.map(({ key, title, unit, better }: Record<string, string>) => [key, title, unit, better])).toEqual([
    ['errors_pct', 'errors', '%', 'lower'],
    ['p95_ms', 'p95', 'ms', 'lower'],
  ])
  for (const metric of metrics)
    for (const [part, ids, since, until] of [
      ['own', ['eu1-web-01'], 5 * MIN, 0],
      ['rest', ['eu1-web-02', 'eu1-web-03'], 5 * MIN, 0],
      ['before', ['eu1-web-01'], 70 * MIN, 10 * MIN],
    ] as const) {
      // The middle by row numbers, from the observations as they were sent.
      const [sql] = await c.rows<{ samples: number; median: number }>(`with v as (
          select (metrics ->> '${metric.key}')::numeric as v, row_number() over (order by (metrics ->> '${metric.key}')::numeric) as n,
            count(*) over () as all from catalog.observation_history h join catalog.resource r using (rid)
          where r.resource_id in ('${ids.join("','")}') and metrics ? '${metric.key}'
            and observed_at > '${ago(since)}' and observed_at <= '${ago(until)}')
        select max("all")::int as samples, avg(v)::float8 as median from v where n in (("all" + 1) / 2, ("all" + 2) / 2)`)
      expect([metric.key, part, metric[part].samples]).toEqual([metric.key, part, sql?.samples])
      expect(metric[part].median).toBeCloseTo(sql?.median ?? Number.NaN, 9)
      expect(metric[part].samples).toBeGreaterThanOrEqual(3)
    }
})

it('have no median where there is no observation, and cover at most the last hour', async () => {
  await observed('eu1-web-04', 80 * MIN, { p95_ms: 5 })
  await observed('eu1-web-04', 30 * MIN, { p95_ms: 9 })
  const [errors, p95] = await compare(['eu1-web-04'], [], 200 * MIN, 190 * MIN)
  const none = { median: null, samples: 0 }
  expect(errors).toMatchObject({ own: none, rest: none, before: none })
  expect(p95).toMatchObject({ own: { median: 9, samples: 1 }, rest: none, before: none })
  const then = await compare(['eu1-web-04'], [], 200 * MIN, 190 * MIN, { until: ago(60 * MIN) })
  expect(then[1]).toMatchObject({ own: { median: 5, samples: 1 }, rest: none, before: none })
})

it('are none where the type declares none, and nobody reads them without the right', async () => {
  expect(await compare(['plain', 'unknown'], ['eu1-web-01'])).toEqual([])
  const body = { resource_ids: [], rest_ids: [], started_at: ago(0), ended_at: ago(0) }
  expect((await c.internally('POST', '/health:compare', body, { service: 'fleet' })).status).toBe(403)
})
