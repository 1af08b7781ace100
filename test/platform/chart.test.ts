import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import { beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { EVERY_APP, SCHEMAS } from '../../apps/platform/deploy/reference.ts'
import { MOUNTED } from '../../apps/platform/deploy/secrets.ts'
import { APPS } from '../../apps/platform/run/apps.ts'
import { CHART, FACTS, NAMES, writeSecrets } from '../support/chart.ts'
import { blocksOf, GUIDES, guideText } from '../support/guides.ts'

/** The chart against the tables of the platform. `npm run check:chart` checks Helm's output from it. */
const textOf = (file: string) => readFileSync(join(CHART, file), 'utf8')
let secrets: Awaited<ReturnType<typeof writeSecrets>>
const envOf = (app: string) => secrets.get(`signalbox-${app}-env`) ?? {}
const filesOf = (app: string) => secrets.get(`signalbox-${app}-files`) ?? {}
beforeAll(async () => {
  secrets = await writeSecrets()
})

describe('the table of the chart', () => {
  it('has the apps, ports and servers of the platform', () => {
    expect(Object.keys(FACTS).sort()).toEqual([...NAMES].sort())
    for (const { name, http, internal, uses } of APPS.filter((app) => app.name in FACTS))
      expect([name, FACTS[name]]).toEqual([
        name,
        expect.objectContaining({ internal: internal[1], uses: [...uses], ...(http && { http: http[1] }) }),
      ])
    expect(NAMES.filter((name) => FACTS[name]?.public)).toEqual(['gateway'])
  })

  it('lets an app call only apps whose addresses its settings have', () => {
    for (const app of NAMES) {
      const urls = Object.values(envOf(app)).flatMap((value) => [...value.matchAll(/https:\/\/signalbox-(\w+):(\d+)/g)])
      const called = [...new Set(urls.map(([, other = '']) => other))].sort()
      expect([app, called]).toEqual([app, [...(FACTS[app]?.calls ?? [])].sort()])
      for (const [, other = '', port] of urls)
        expect([FACTS[other]?.http, FACTS[other]?.internal]).toContain(Number(port))
    }
  })
})

describe('the Secrets of the set-up', () => {
  it('have every file that a setting names, and no key of another app or of the authority', () => {
    for (const app of NAMES) {
      const named = Object.values(envOf(app)).flatMap((value) =>
        [...value.matchAll(/\/etc\/signalbox\/([\w./-]+)/g)].map(([, file]) => file),
      )
      expect([...new Set(named)].sort()).toEqual(Object.keys(filesOf(app)).sort())
      const keys = Object.keys(filesOf(app)).filter((name) => /\.key$|^keys\./.test(name))
      const others = NAMES.filter((name) => name !== app)
      for (const key of keys) expect(others.filter((name) => key.split('.').includes(name))).toEqual([])
    }
    expect([...secrets.values()].flatMap((data) => Object.keys(data)).filter((name) => /ca\.key$/.test(name))).toEqual(
      [],
    )
  })

  it('have the files by which a scaler reads the backlog of Temporal', () => {
    const [, cert = '', key = ''] = /"cert" "([\w.-]+)" "key" "([\w.-]+)"/.exec(textOf('templates/apps.yaml')) ?? []
    expect(Object.keys(filesOf('worker'))).toEqual(expect.arrayContaining([cert, key, 'tls.ca.pem']))
    expect(cert).toContain('temporal')
  })

  it('give the API key of Temporal only to its callers', () => {
    const have = NAMES.filter((app) => Object.values(filesOf(app)).includes('open-sesame'))
    expect(have.toSorted()).toEqual(['relay', 'worker'])
  })

  it('give the migration only the accounts of the database', () => {
    const { 'secrets.json': accounts = '', 'owner-url': owner = '' } = secrets.get('signalbox-migrate') ?? {}
    expect(Object.keys(JSON.parse(accounts))).toEqual(['servers'])
    expect(Object.keys(JSON.parse(accounts).servers)).toEqual(['users'])
    expect(new URL(owner).searchParams.get('sslrootcert')).toBe(`${MOUNTED}/tls.ca.pem`)
    expect(new URL(owner).searchParams.get('sslmode')).toBe('verify-full')
  })
})

describe('values', () => {
  const AGENT = { replicas: 1, image: 'agent:1', secret: 'agent', memory: '1Gi', egress: [{ ports: [{ port: 443 }] }] }
  const valid = new Ajv({ strict: false, allErrors: true }).compile(JSON.parse(textOf('values.schema.json')))
  const faults = (change: (values: Record<string, never>) => void) => {
    const values = parse(textOf('values.yaml'))
    change(values)
    return valid(values) ? [] : (valid.errors ?? []).map(({ instancePath }) => instancePath)
  }

  it('of the chart are valid, and list all that the schema knows', () => {
    expect(faults(() => {})).toEqual([])
    const schema = JSON.parse(textOf('values.schema.json'))
    const values = parse(textOf('values.yaml'))
    const known = Object.keys(schema.properties).filter((name) => name !== 'global')
    expect(Object.keys(values).sort()).toEqual(known.sort())
    expect(schema.properties.apps.required.toSorted()).toEqual([...NAMES].sort())
  })

  it.each<[string, (values: Any) => void]>([
    ['', (values) => Object.assign(values, { replicas: 3 })],
    ['/apps', (values) => Object.assign(values.apps, { fleet: { replicas: 1, memory: '1Gi' } })],
    ['/apps/worker', (values) => Object.assign(values.apps.worker, { replicsa: 3 })],
    ['/apps/worker/memory', (values) => Object.assign(values.apps.worker, { memory: 'much' })],
    ['/apps/gateway/env', (values) => Object.assign(values.apps.gateway, { env: { 'not a name': 'x' } })],
    ['/apps/session/mounts/0', (values) => Object.assign(values.apps.session, { mounts: [{ at: '/run/sso' }] })],
    [
      '/apps/session/mounts/0',
      (values) => Object.assign(values.apps.session, { mounts: [{ secret: 'a', configMap: 'b', at: '/run/sso' }] }),
    ],
    [
      '/apps/session/mounts/0/at',
      (values) => Object.assign(values.apps.session, { mounts: [{ secret: 'a', at: '/etc/signalbox/sso' }] }),
    ],
    ['/image/digest', (values) => Object.assign(values.image, { digest: 'latest' })],
    ['/builds/0', (values) => Object.assign(values, { builds: [{ id: 'b1' }] })],
    ['/edge/kind', (values) => Object.assign(values.edge, { kind: 'NodePort' })],
    ['/edge/parents', (values) => Object.assign(values.edge, { kind: 'HTTPRoute' })],
    ['/edge/trustedProxies/0', (values) => Object.assign(values.edge, { trustedProxies: ['anyone'] })],
    ['/agents/infra/egress', (values) => Object.assign(values.agents, { infra: { ...AGENT, egress: [] } })],
    ['/agents/infra/url', (values) => Object.assign(values.agents, { infra: { ...AGENT, url: 'http://plain' } })],
    ['/volumes/anchors', (values) => Object.assign(values.volumes, { anchors: '' })],
  ])('with a mistake at "%s" are refused', (where, change) => {
    expect(faults(change)).toContain(where)
  })
})

describe('a template', () => {
  it('names only settings of the reference', () => {
    const known = new Set(
      [EVERY_APP, ...Object.values(SCHEMAS).map(({ properties }) => properties)].flatMap(Object.keys),
    )
    const texts = readdirSync(join(CHART, 'templates')).map((file) => textOf(`templates/${file}`))
    const named = texts.flatMap((text) => text.match(/\b[A-Z]+__[A-Z_]+\b/g) ?? [])
    expect(named.length).toBeGreaterThan(2)
    expect(named.filter((name) => !known.has(name))).toEqual([])
  })
})

/** They explain how much an installation carries, and how a receiver of others is set up. */
const WITHOUT_COMMANDS = ['capacity.md', 'siem.md']
describe('a guide', () => {
  it('is in the list, and names the test of each block of commands', () => {
    const listed = guideText('README.md')
    for (const file of GUIDES) {
      expect(listed).toContain(`](${file})`)
      const marks = [...guideText(file).matchAll(/^ *```(.+)$/gm)].map(([, mark]) => mark)
      expect([
        file,
        marks.filter(
          (mark) =>
            !['sh cluster', 'sh servers', 'sh postgres', 'sh all', 'sh machine', 'sh engine', 'console'].includes(
              mark ?? '',
            ),
        ),
      ]).toEqual([file, []])
      expect([file, blocksOf(file, 'cluster', 'servers', 'machine').length > 0]).toEqual([
        file,
        !WITHOUT_COMMANDS.includes(file),
      ])
    }
  })
})
// biome-ignore lint/suspicious/noExplicitAny: a person wrote the values
type Any = any
