import { randomUUID } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startImporter } from '../../apps/catalog/imports/worker.ts'
import type { Found } from '../../apps/cli/import/items.ts'
import { readKubernetes } from '../../apps/cli/import/kubernetes/read.ts'
import { readNetbox } from '../../apps/cli/import/netbox/read.ts'
import { losesAnything, lossOf } from '../../apps/cli/import/run/report.ts'
import { outcomesOf, sendItems } from '../../apps/cli/import/send.ts'
import { parseSource, readSource } from '../../apps/cli/import/source.ts'
import type { Api } from '../../apps/cli/session/api.ts'
import type { ImportItem } from '../../apps/shared/contracts/imports/imports.ts'
import { type Catalog, seedRegion, startCatalog } from './support/platform.ts'

/**
 * What goes in comes out equal. SIGNALBOX_PUBLIC_DATA names a folder with public data that we may not ship:
 * `netbox*.json`, the dumps of github.com/netbox-community/netbox-demo-data, and `*.yaml`, manifests such as
 * release/kubernetes-manifests.yaml of github.com/GoogleCloudPlatform/microservices-demo. Without it our own data of
 * the same shape is imported (here and in test/cli).
 */
const PUBLIC = process.env.SIGNALBOX_PUBLIC_DATA
const LONG_MS = 600_000

let c: Catalog
let importer: ReturnType<typeof startImporter>
const begin = async () => {
  c = await startCatalog()
  await seedRegion(c, 'eu1', 0)
  c.deps.graph.start()
  importer = startImporter(c.deps)
}
const end = async () => {
  await importer.stop()
  await c.stop()
}
beforeAll(begin)
afterAll(end)

/** The public API as the command line sees it. */
const api = {
  send: async (_: string, path: string, body: object, headers: Record<string, string>) => {
    const reply = await c.as('ada').post(path.replace('/api', ''), body, { key: headers['idempotency-key'] ?? null })
    expect(reply.status, reply.text).toBeLessThan(300)
    return reply
  },
  get: async (path: string) => (await c.as('ada').get(path.replace('/api', ''))).body,
  list: async (path: string) => {
    const items: unknown[] = []
    for (let token = ''; ; ) {
      const { body } = await c.as('ada').get(`${path.replace('/api', '')}${token && `?page_token=${token}`}`)
      items.push(...body.items)
      if (!body.next_page_token) return items
      token = encodeURIComponent(body.next_page_token)
    }
  },
} as unknown as Api

const take = async (name: string, items: readonly ImportItem[]) => {
  const source = { kind: 'test', name, file_digest: `sha256:${'0'.repeat(64)}` }
  const options = { complete_fields: true, complete_relationships: true }
  return sendItems({ api, source, items, size: 1000, options, dry_run: false, key: randomUUID(), onBatch: () => {} })
}

const byText = (a: unknown, b: unknown) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)
/** An edge by the ids of its ends in the source; for an edge without direction the smaller end comes first. */
const edge = (from: string, type_key: string, to: string) =>
  type_key === 'connects_to' ? [...[from, to].sort(), type_key] : [from, to, type_key]
const unique = (edges: string[][]) => [...new Map(edges.map((one) => [JSON.stringify(one), one])).values()].sort(byText)

const comesOutEqual = async (name: string, items: readonly ImportItem[]) => {
  const stored = await c.rows(
    `select i.external_id, t.type_key, r.name, r.labels, r.annotations, r.desired_state, s.observed_state,
        p.external_id as parent
     from catalog.import_ref i join catalog.resource r using (rid) join catalog.resource_state s using (rid)
       join (select distinct id, type_key from catalog.type) t on t.id = r.type_id
       left join catalog.import_ref p on p.rid = r.parent_rid and p.source_name = $1
     where i.source_name = $1 order by i.external_id collate "C"`,
    [name],
  )
  const wanted = items.map((item) => ({
    external_id: item.external_id,
    type_key: item.type_key,
    name: item.name,
    labels: item.labels ?? {},
    annotations: item.annotations ?? {},
    desired_state: item.desired_state ?? {},
    observed_state: item.observed_state ?? {},
    parent: item.parent_external_id ?? null,
  }))
  expect(stored).toEqual(wanted.sort((a, b) => (a.external_id < b.external_id ? -1 : 1)))
  const edges = await c.rows<{ from: string; type_key: string; to: string }>(
    `select a.external_id as "from", t.type_key, b.external_id as "to" from catalog.relationship e
       join catalog.import_ref a on a.rid = e.src and a.source_name = $1
       join catalog.import_ref b on b.rid = e.dst and b.source_name = $1
       join catalog.relationship_type t on t.id = e.reltype_id where t.type_key <> 'contained_in'`,
    [name],
  )
  const named = items.flatMap(({ external_id, relationships = [] }) =>
    relationships.flatMap(({ type_key, direction, target_external_id: to }) => {
      if (to === undefined || type_key === 'contained_in') return []
      return [direction === 'in' ? edge(to, type_key, external_id) : edge(external_id, type_key, to)]
    }),
  )
  expect(unique(edges.map(({ from, type_key, to }) => edge(from, type_key, to)))).toEqual(unique(named))
}

/** Imports, compares, and imports again: everything is unchanged. */
const goesRound = async (name: string, items: readonly ImportItem[]) => {
  const first = await take(name, items)
  expect(first.filter(({ problem }) => problem !== undefined).slice(0, 3)).toEqual([])
  expect(outcomesOf(first)).toEqual({ created: items.length })
  await comesOutEqual(name, items)
  expect(outcomesOf(await take(name, items))).toEqual({ unchanged: items.length })
  await comesOutEqual(name, items)
}

/** A backbone: rings of sites, each with two routers, their interfaces and the links between them. */
const backbone = (sites: number): ImportItem[] => {
  const place = (type: string, id: string, parent_external_id?: string, desired_state = {}) => ({
    external_id: id,
    type_key: `topology.${type}`,
    name: id,
    desired_state,
    ...(parent_external_id && { parent_external_id }),
  })
  const items: ImportItem[] = [place('region', 'backbone', undefined, { code: 'bb' })]
  const link = (external_id: string, parent_external_id: string, others: string[]): ImportItem => ({
    external_id,
    type_key: 'infra.interface',
    name: external_id,
    parent_external_id,
    desired_state: { kind: 'optical', speed_mbps: 100_000, enabled: others.length > 0 },
    relationships: others.map((target_external_id) => ({ type_key: 'connects_to', target_external_id })),
  })
  for (let site = 0; site < sites; site++) {
    const dc = `site-${site}`
    items.push(place('datacenter', dc, 'backbone', { code: dc }))
    items.push(place('layer', `${dc}/core`, dc, { layer_kind: 'core' }))
    for (const role of ['a', 'b']) {
      const router = `${dc}/${role}`
      items.push({
        external_id: router,
        type_key: 'infra.network_device',
        name: router,
        parent_external_id: `${dc}/core`,
        lifecycle_status: 'active',
        labels: { ring: String(site % 7) },
        annotations: { 'import/note': `Router ${role} of site ${site}: "é" / ~1` },
        desired_state: { hostname: `r${site}${role}`, role: 'router', config: { as: 65_000 + site, lists: [1, [2]] } },
        observed_state: { release: '1.0' },
        relationships: [{ type_key: 'depends_on', target_external_id: `site-${(site + 1) % sites}/${role}` }],
      })
      const next = [`site-${(site + 1) % sites}/${role}/west`, `site-${(site * 5 + 3) % sites}/${role}/west`]
      items.push(link(`${router}/east`, router, [...new Set(next)]), link(`${router}/west`, router, []))
    }
  }
  return items
}

describe('goes in and comes out equal', { timeout: LONG_MS }, () => {
  it('a topology of several hundred nodes, and its drawing', async () => {
    const items = backbone(90)
    expect(items.length).toBeGreaterThan(700)
    await goesRound('backbone', items)
    const [{ resource_id } = { resource_id: '' }] = await c.rows<{ resource_id: string }>(
      `select resource_id from catalog.resource where name = 'backbone'`,
    )
    await c.followed()
    const query = 'depth=10&direction=in&relationship_types=contained_in&max_nodes=5000&fanout=1000'
    const { status, body, text } = await c.as('vic').get(`/v1/graphs/resources?root_id=${resource_id}&${query}`)
    expect(status, text).toBe(200)
    expect(body.nodes.map(({ name }: { name: string }) => name).sort()).toEqual(items.map(({ name }) => name).sort())
  })

  const files = PUBLIC === undefined ? [] : readdirSync(PUBLIC).filter((name) => /\.(json|ya?ml)$/.test(name))
  it.each(files)('public data: %s', async (file) => {
    const { documents } = parseSource(readSource(join(PUBLIC ?? '', file)))
    const name = `public-${files.indexOf(file)}`
    const into = { resource_id: 'eu1-a-web', type_key: 'topology.segment' }
    const found: Found = file.startsWith('netbox')
      ? readNetbox(documents, { source: name, into: undefined })
      : readKubernetes(documents, { source: name, into })
    process.stdout.write(`${file}: ${found.items.length} items\n`)
    // Two dumps of one kind have regions with the same names: each gets its own catalog.
    await end()
    await begin()
    expect(losesAnything(found), JSON.stringify(lossOf(found).lost.slice(0, 5))).toBe(false)
    await goesRound(name, found.items)
  })
})
