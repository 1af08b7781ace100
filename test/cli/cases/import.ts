import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { atTerminal, home, json, login, type Ran, signalbox } from '../client.ts'

describe('importing a file', () => {
  const manifest = (release: string, ...services: string[]) =>
    [
      ...services.map((name) => ({
        kind: 'Service',
        metadata: { name },
        spec: { selector: { app: name }, ports: [{ port: 80, protocol: 'TCP' }] },
      })),
      {
        kind: 'Deployment',
        metadata: { name: 'web' },
        spec: {
          replicas: 2,
          template: {
            metadata: { labels: { app: 'web' } },
            spec: { containers: [{ image: `shop/web:${release}`, env: [{ name: 'CART', value: 'cart:80' }] }] },
          },
        },
      },
      { kind: 'Odd', metadata: { name: 'settings' }, spec: { a: 1 } },
    ]
      .map((document) => JSON.stringify(document))
      .join('\n---\n')
  type Body = {
    results: { external_id: string; outcome: string; diff: { path: string; before?: unknown; after?: unknown }[] }[]
    missing: string[]
    generic: Record<string, number>
  }
  const run = (file: string, ...options: string[]) =>
    signalbox('ada', ['import', 'kubernetes', file, '--source-name', 'shop', '--batch', '2', ...options])
  const ends = (ran: Ran) => {
    const { results } = json<Body>(ran)
    return [ran.code, Object.fromEntries(results.map(({ external_id, outcome }) => [external_id, outcome]))]
  }
  const all = (outcome: string, ...ids: string[]) => Object.fromEntries(ids.map((id) => [id, outcome]))
  const IDS = ['cluster/shop', 'shop/Service/default/web', 'shop/Service/default/cart', 'shop/Deployment/default/web']
  const CONFIG = 'shop/Odd/default/settings'

  beforeAll(async () => {
    await login('ada')
    const place = (type_key: string, name: string, desired_state: object, parent_id?: string) => ({
      resource_id: name,
      type_key,
      name,
      desired_state,
      ...(parent_id && { parent_id }),
    })
    for (const body of [
      place('topology.region', 'imp', { code: 'imp' }),
      place('topology.datacenter', 'imp-a', { code: 'imp-a' }, 'imp'),
    ])
      expect(await signalbox('ada', ['resource', 'create', '-f', '-'], JSON.stringify(body))).toMatchObject({ code: 0 })
    writeFileSync(join(home, 'shop.yaml'), manifest('1.0.0', 'web', 'cart'))
    writeFileSync(join(home, 'next.yaml'), manifest('1.1.0', 'web'))
  })

  it('predicts the result, imports, and changes nothing the second time', async () => {
    const before = await run('shop.yaml', '--into', 'imp-a', '--dry-run')
    expect(before).toMatchObject({ code: 8, out: expect.stringContaining('+ add      shop/Deployment/default/web') })
    expect(before.err).toContain('imported as infra.generic: Odd (1)')
    expect((await signalbox('ada', ['resource', 'list', '--type', 'infra.cluster', '-o', 'id'])).out).toBe('')
    const dry = ends(await run('shop.yaml', '--into', 'imp-a', '--dry-run', '-o', 'json'))
    expect(dry).toEqual([8, all('created', ...IDS, CONFIG)])
    const made = atTerminal('ada', ['import', 'kubernetes', 'shop.yaml', '--source-name', 'shop', '--into', 'imp-a'])
    expect(await made.code).toBe(0)
    expect(made.screen()).toMatch(/infra\.service +2\b/)
    expect(made.screen()).toMatch(/#{24} 5\/5 imported, \d+\/s/)
    expect(ends(await run('shop.yaml', '--into', 'imp-a', '-o', 'json'))).toEqual([0, all('unchanged', ...IDS, CONFIG)])
    expect(await run('shop.yaml', '--into', 'imp-a', '--dry-run')).toMatchObject({
      code: 0,
      err: expect.stringContaining('changes  0'),
    })
    const { out } = await run('shop.yaml', '--into', 'imp-a', '--jsonl')
    const lines = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines.flatMap(({ done, of }) => (done === undefined ? [] : [[done, of]]))).toEqual([
      [2, 5],
      [4, 5],
      [5, 5],
    ])
    expect(lines.at(-1)).toMatchObject({ outcomes: { unchanged: 5 }, generic: { Odd: 1 } })
    const [web] = json<{ resource_id: string }[]>(
      await signalbox('ada', ['resource', 'list', '--type', 'infra.deployment', '-o', 'json']),
    )
    const edges = await signalbox('ada', [
      'api',
      'GET',
      `/api/v1/resources/${web?.resource_id}/relationships?direction=out`,
    ])
    for (const kind of ['member_of', 'depends_on', 'contained_in']) expect(edges.out).toContain(`"${kind}"`)
  })

  it('shows the difference of a newer file, labels missing resources, and removes the label later', async () => {
    const dry = await run('next.yaml', '--into', 'imp-a', '--dry-run', '--mark-missing', '-o', 'json')
    expect(dry.code).toBe(8)
    expect(json<Body>(dry).results.find(({ external_id }) => external_id === IDS[3])).toMatchObject({
      outcome: 'updated',
      diff: expect.arrayContaining([{ path: '/desired_state/release', before: '1.0.0', after: '1.1.0' }]),
    })
    const { missing } = json<Body>(await run('next.yaml', '--into', 'imp-a', '--mark-missing', '-o', 'json'))
    expect(missing).toHaveLength(1)
    const label = async () =>
      (await signalbox('ada', ['resource', 'show', missing[0] ?? '', '-o', 'json'])).out.includes('import-missing')
    expect(await label()).toBe(true)
    await run('shop.yaml', '--into', 'imp-a', '--mark-missing')
    expect(await label()).toBe(false)
  })

  it('is for machines too', async () => {
    await signalbox('ada', ['machine', 'create', 'importer', '--owner', 'olga'])
    for (const role of ['controller', 'viewer'])
      expect(await signalbox('ada', ['user', 'grant', 'machine:importer', role])).toMatchObject({ code: 0 })
    const add = ['machine', 'key', 'add', 'importer', '--permissions', 'catalog:read,catalog:record', '--days', '30']
    const SIGNALBOX_TOKEN = /sbk_\S+/.exec((await signalbox('ada', add)).out)?.[0] ?? ''
    const args = ['import', 'kubernetes', 'shop.yaml', '--source-name', 'shop', '--into', 'imp-a', '--batch', '2']
    const ran = await signalbox('nobody', [...args, '-o', 'json'], '', { SIGNALBOX_TOKEN })
    expect(ends(ran), ran.err).toEqual([0, all('unchanged', ...IDS, CONFIG)])
  })

  it('refuses an unknown or unsuitable container, a wrong name and a wrong file', async () => {
    expect(await run('shop.yaml', '--into', 'nowhere')).toMatchObject({ code: 1 })
    const homeless = await signalbox('ada', ['import', 'kubernetes', 'shop.yaml', '--source-name', 'other'])
    expect(homeless).toMatchObject({ code: 7, err: expect.stringMatching(/cardinality.*infra\.cluster: 1 in all/) })
    expect(homeless.err).toContain('hint     --into ID')
    expect(await signalbox('ada', ['import', 'kubernetes', 'shop.yaml', '--source-name', 'Not A Name'])).toMatchObject({
      code: 2,
    })
    const state = await signalbox('ada', ['import', 'terraform', 'shop.yaml', '--source-name', 'x'])
    expect(state).toMatchObject({ code: 2, err: expect.stringContaining('shop.yaml cannot be imported: it is no') })
    for (const { err } of [homeless, state]) expect(err).not.toMatch(/\n\s+at /)
  })
})
