import { describe, expect, it } from 'vitest'
import { ensurePerson } from '../../../apps/platform/demo/accounts.ts'
import { json, login, passwords, signalbox, stack } from '../client.ts'

describe('the catalog', () => {
  type Row = Record<string, unknown>
  const read = async (...args: string[]) => json<Row[]>(await signalbox('ada', [...args, '-o', 'json']))

  it('lists and shows types, capabilities and places, and relations of a resource in both directions', async () => {
    const types = await signalbox('ada', ['type', 'list', '--all'])
    expect(types.out).toMatch(/fleet\.host +Fleet host .* fleet@\d+\.\d+\.\d+ +operation/)
    expect((await signalbox('ada', ['type', 'show', 'fleet.host'])).out).toMatch(/^type_key: fleet\.host\n/)
    expect(await signalbox('ada', ['type', 'show', 'no.such'])).toMatchObject({
      code: 1,
      err: expect.stringContaining('not_found'),
    })

    expect((await signalbox('ada', ['capability', 'list'])).out).toMatch(/compute\.slots +Room for machines/)
    const shown = await signalbox('ada', ['capability', 'show', 'compute.slots', '-o', 'json'])
    expect(json<Row>(shown)).toMatchObject({ capability_key: 'compute.slots', providers: { total: 0 } })

    expect((await signalbox('ada', ['topology', 'list'])).out).toMatch(/^region .*\n(.*\n)*imp +\w+ +\d+/)
    expect(await read('topology', 'list', '--level', 'datacenter', '--region', 'imp')).toMatchObject([
      { resource_id: 'imp-a' },
    ])
    expect(await signalbox('ada', ['topology', 'list', '--level', 'rack'])).toMatchObject({ code: 2 })
    const tree = await signalbox('ada', ['topology', 'show', 'imp'])
    expect(tree.out).toMatch(/^imp {3}region .*\n {2}imp-a {3}datacenter {3}\w+ {3}\d+ resources\n/)
    expect(await signalbox('ada', ['topology', 'show', 'atlantis'])).toMatchObject({
      code: 1,
      err: expect.stringContaining('No region is called "atlantis".'),
    })
    // A link between regions is no containment.
    const near = { resource_id: 'imp-near', type_key: 'topology.region', name: 'imp-near', desired_state: {} }
    const linked = { ...near, relationships: [{ type_key: 'connects_to', target_id: 'imp' }] }
    const created = await signalbox('ada', ['resource', 'create', '-f', '-'], JSON.stringify(linked))
    expect(created, created.err).toMatchObject({ code: 0 })
    const places = (await signalbox('ada', ['topology', 'show'])).out
    expect(places).toMatch(/^imp {3}region .*\n {2}imp-a {3}datacenter /m)
    expect(places).toMatch(/^imp-near {3}region /m)

    expect(await read('resource', 'impact', 'imp')).toContainEqual(
      expect.objectContaining({ resource_id: 'imp-a', effect: 'unhealthy', distance: 1 }),
    )
    const gone = await signalbox('ada', ['resource', 'impact', 'imp', '--assume', 'gone'])
    expect(gone).toMatchObject({
      code: 0,
      err: expect.stringMatching(/0 of 0 needs unmet; resources that prevent its retirement: [1-9]\d*$/m),
    })
    expect(await signalbox('ada', ['resource', 'impact', 'imp', '--assume', 'broken'])).toMatchObject({ code: 2 })
    expect((await signalbox('ada', ['resource', 'search', 'imp'])).out).toMatch(/^id .*\n(.*\n)*imp /)
    const pruned = await signalbox('ada', ['resource', 'diff', 'imp', '--from', '2001-01-01T00:00:00Z'])
    expect(pruned).toMatchObject({ code: 7, err: expect.stringContaining('history_pruned') })
    const from = new Date(Date.now() - 1).toISOString()
    expect(await read('resource', 'diff', 'imp', '--from', from)).toEqual([])

    const clusters = await read('resource', 'list', '--type', 'infra.cluster', '--all')
    const cluster = clusters.find(({ parent_id }) => parent_id === 'imp-a')
    const relations = await signalbox('ada', ['resource', 'relations', String(cluster?.resource_id)])
    expect(relations.out).toMatch(/-> contained_in +imp-a +topology\.datacenter/)
    expect(relations.out).toMatch(/<- /)
  })
  it('relates, moves and retires a resource, at the version that was read', async () => {
    const box = async (name: string, parent_id = 'imp-a') => {
      const body = { resource_id: name, type_key: 'infra.generic', name, parent_id }
      const input = JSON.stringify({ ...body, desired_state: { provider: 'p', kind: 'box' } })
      expect(await signalbox('ada', ['resource', 'create', '-f', '-'], input)).toMatchObject({ code: 0 })
    }
    for (const name of ['cli-box', 'cli-peer']) await box(name)
    const ada = (...args: string[]) => signalbox('ada', ['resource', ...args])
    expect((await ada('relate', 'cli-box', 'depends_on', 'cli-peer', '--dry-run')).out).toBe(
      'Would be: cli-box   version 2\n',
    )
    expect((await ada('relate', 'cli-box', 'depends_on', 'cli-peer')).out).toBe('cli-box   version 2\n')
    expect((await ada('relate', 'cli-box', 'depends_on', 'cli-peer')).out).toBe('cli-box   version 2, no change\n')
    expect((await ada('relations', 'cli-box')).out).toMatch(/-> depends_on +cli-peer/)
    expect((await ada('move', 'cli-box', 'cli-peer', '--reason', 'tidy')).out).toBe('cli-box   version 3\n')
    expect(await read('resource', 'show', 'cli-box')).toMatchObject({ parent_id: 'cli-peer' })
    expect((await ada('move', 'cli-box', 'cli-peer')).out).toBe('cli-box   version 3, no change\n')
    for (const args of [
      ['move', 'cli-box', 'imp-a', '--version', '3'],
      ['relate', 'cli-box', 'depends_on', 'cli-peer', '--remove', '--version', '4'],
      ['relate', 'cli-box', 'depends_on', 'cli-peer', '--version', '5'],
      ['move', 'cli-box', 'cli-peer', '--version', '6'],
    ]) {
      const once = await ada(...args, '--idempotency-key', `key of ${args}`)
      expect(once).toMatchObject({ code: 0, out: `cli-box   version ${Number(args.at(-1)) + 1}\n` })
      expect(await ada(...args, '--idempotency-key', `key of ${args}`)).toEqual(once)
    }
    expect(await ada('move', 'cli-box', 'imp-a', '--idempotency-key', 'k')).toMatchObject({
      code: 2,
      err: expect.stringContaining('--version is missing'),
    })
    expect(await ada('relate', 'cli-box', 'depends_on', 'cli-peer', '--remove', '--version', '1')).toMatchObject({
      code: 7,
      err: expect.stringContaining('version_conflict/version_mismatch'),
    })
    expect(await ada('relate', 'cli-box', 'no_such', 'cli-peer')).toMatchObject({
      code: 2,
      err: expect.stringContaining('/relationship_changes/0/type_key no_such is not a relationship type'),
    })
    expect(await ada('retire', 'cli-peer', '--yes')).toMatchObject({
      code: 2,
      err: expect.stringContaining('blocked_by_dependents'),
    })
    expect(await ada('retire', 'cli-box')).toMatchObject({ code: 2, err: expect.stringContaining('--yes') })
    expect((await ada('retire', 'cli-box', '--yes')).out).toBe('cli-box   version 8\n')
    expect(await read('resource', 'show', 'cli-box')).toMatchObject({ lifecycle_status: 'retired' })
    expect((await ada('history', 'cli-box')).out).toMatch(/\b1 .* created\b/)
    expect((await ada('search', 'cli', 'peer')).out).toContain('cli-peer')
  })

  it('changes a resource, dry-runs a change, and names the intent that a change became', async () => {
    await login('olga')
    const host = { resource_id: 'cli-host', type_key: 'fleet.host', name: 'cli-host', parent_id: 'imp-a' }
    const wanted = { ...host, desired_state: { hostname: 'cli-host', os: 'linux', release: '1.0.0', traffic: 'in' } }
    const create = ['resource', 'create', '-f', '-']
    const update = ['resource', 'update', 'cli-host', '-f', '-']
    expect(await signalbox('olga', [...create, '--dry-run'], JSON.stringify(wanted))).toMatchObject({
      code: 0,
      out: expect.stringContaining('Would be: cli-host'),
    })
    expect(await signalbox('olga', ['resource', 'show', 'cli-host'])).toMatchObject({ code: 1 })
    expect((await signalbox('olga', create, JSON.stringify(wanted))).out).toMatch(
      /^The change of cli-host is intent \S+; it is waiting for its plan\.\nNext: signalbox plan preview \S+\n$/,
    )
    const label = JSON.stringify({ labels: { team: 'web' } })
    expect((await signalbox('olga', [...update, '--dry-run'], label)).out).toBe('Would be: cli-host   /labels/team\n')
    expect((await signalbox('olga', update, label)).out).toBe('cli-host   version 2\n')

    // Another person's field: the refusal says who, since when, and what to do. It changes once taken over with a
    // reason.
    const ivo = { username: 'ivo', password: 'rT5hw-xC7pP-kJ2pa-qR4zz', roles: ['operator'] }
    await ensurePerson(stack.gateway_url, (await stack.people()).ada, ivo, 'netops')
    passwords.set('ivo', ivo.password)
    await login('ivo')
    const mine = JSON.stringify({ labels: { team: 'platform' } })
    const updateAs = (...more: string[]) => signalbox('ivo', [...update, ...more], mine)
    for (const more of [[], ['--dry-run']])
      expect(await updateAs(...more)).toMatchObject({
        code: 7,
        err: expect.stringMatching(
          /version_conflict\/field_owned: .*\/labels\/team \(olga, since \S+Z\)\.\nhint .*--force --reason TEXT/,
        ),
      })
    expect(await updateAs('--force')).toMatchObject({ code: 2, err: expect.stringContaining('--reason is missing') })
    expect((await updateAs('--force', '--reason', 'team moved')).out).toBe('cli-host   version 3\n')

    // Any endpoint, with the type of body that the path takes: a change as a merge or as a list of operations.
    const patch = (version: number, change: unknown) =>
      signalbox(
        'ivo',
        ['api', 'PATCH', '/v1/resources/cli-host', '-d', '-', '--if-match', `"${version}"`],
        JSON.stringify(change),
      )
    const merged = await patch(3, { labels: { team: 'web' } })
    expect(merged, merged.err).toMatchObject({ code: 0 })
    const patched = await patch(4, [{ op: 'replace', path: '/labels/team', value: 'platform' }])
    expect(patched, patched.err).toMatchObject({ code: 0 })
    expect(await read('resource', 'show', 'cli-host')).toMatchObject({ version: 5, labels: { team: 'platform' } })
  })
})
