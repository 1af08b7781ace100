import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { EVERY_APP, SCHEMAS } from '../../apps/platform/deploy/reference.ts'
import { operationQueue } from '../../workflows/operation/messages.ts'
import { type Any, CHART, FACTS, NAMES, objectsIn, writeSecrets } from '../support/chart.ts'

/** Helm's output from the chart, for several kinds of installations. */
const helm = process.env.CHART_HELM ?? ''
const scratch = mkdtempSync(join(tmpdir(), 'signalbox-helm-'))
afterAll(() => rmSync(scratch, { recursive: true, force: true }))
const DIGEST = `sha256:${'a'.repeat(64)}`

const run = (verb: string, values: object, ...args: string[]): string => {
  const file = join(scratch, 'values.yaml')
  writeFileSync(file, stringify(values))
  return execFileSync(helm, [verb, ...args, CHART, '--values', file], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}
const render = (values: object): Any[] => objectsIn(run('template', values, 'signalbox', '--namespace', 'signalbox'))

const SERVER_PORTS: Record<string, number> = { postgres: 5432, redis: 6379, nats: 4222, temporal: 7233 }

const SETS: Record<string, object> = {
  'as it comes': {},
  'scaled and watched': {
    image: { digest: DIGEST },
    scaling: true,
    metrics: { monitor: true, rules: true, dashboard: true, from: [{ namespaceSelector: {} }] },
    edge: { trustedProxies: ['10.0.0.0/8'], tlsSecret: 'edge', class: 'nginx', from: [{ namespaceSelector: {} }] },
  },
  'two builds of the worker': {
    builds: [
      { id: 'new', tag: 'new', replicas: 3 },
      { id: 'old', digest: DIGEST },
    ],
  },
  'scaled by the work that waits': {
    scaling: true,
    backlog: { address: 'temporal.example.com:7233', apiKey: true },
    builds: [
      { id: 'new', tag: 'new', replicas: 3 },
      { id: 'old', tag: 'old' },
    ],
  },
  'behind a Gateway': { edge: { kind: 'HTTPRoute', parents: [{ name: 'public', namespace: 'edge' }] } },
  'without an edge, policies or migration': {
    edge: { kind: 'None' },
    networkPolicy: false,
    migrate: { enabled: false },
  },
  'with settings and destinations of its own': {
    image: { repository: 'registry.example.com/signalbox', tag: '1.2.3', pullSecrets: [{ name: 'pull' }] },
    apps: {
      operations: { env: { NOTIFY__ENABLED: true } },
      worker: { egress: [{ to: [{ ipBlock: { cidr: '10.1.0.0/16' } }], ports: [{ port: 443 }] }] },
      session: { mounts: [{ secret: 'corp', at: '/run/sso' }] },
    },
  },
}
/** Secrets of a person, which the values name. */
const OWN_SECRETS = ['corp']
let secrets: Awaited<ReturnType<typeof writeSecrets>>
beforeAll(async () => {
  secrets = await writeSecrets()
})

describe.each(Object.entries(SETS))('an installation %s', (_name, values) => {
  const objects = render(values)
  const of = (kind: string) => objects.filter((one) => one.kind === kind)
  const pods: [string, Any][] = [...of('Deployment'), ...of('Job')].map(({ metadata, spec }) => [
    metadata.name,
    spec.template,
  ])

  it('passes lint', () => {
    expect(run('lint', values, '--strict')).toContain('0 chart(s) failed')
  })

  it('confines every pod: no root, no rights, no token, limits, no write to its own files, no secret in its command', () => {
    expect(pods.length).toBeGreaterThanOrEqual(NAMES.length)
    for (const [name, { spec }] of pods) {
      expect([name, spec.automountServiceAccountToken, spec.serviceAccountName]).toEqual([name, false, undefined])
      expect(spec.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 65532 })
      expect(spec.securityContext.seccompProfile).toEqual({ type: 'RuntimeDefault' })
      expect([spec.hostNetwork, spec.hostPID, spec.hostIPC]).toEqual([undefined, undefined, undefined])
      for (const { command, securityContext, resources, volumeMounts } of spec.containers) {
        // A list of processes shows a command, and with it the secret that Kubernetes puts there.
        expect([name, command.join(' ')]).toEqual([name, expect.not.stringContaining('$(')])
        expect(securityContext).toEqual({
          ...{ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true },
          capabilities: { drop: ['ALL'] },
        })
        for (const kind of ['requests', 'limits'])
          expect(Object.keys(resources[kind]).sort()).toEqual(['cpu', 'memory'])
        const mounted = volumeMounts.map((one: Any) => one.name)
        expect(mounted.sort()).toEqual(spec.volumes.map((one: Any) => one.name).sort())
      }
    }
  })

  it('probes every app at one of its ports, and lets it end gracefully', () => {
    for (const { metadata, spec } of of('Deployment')) {
      const [container] = spec.template.spec.containers
      const ports = container.ports.map(({ name }: Any) => name)
      for (const probe of ['startupProbe', 'readinessProbe', 'livenessProbe']) {
        expect([metadata.name, container[probe].httpGet.scheme]).toEqual([metadata.name, 'HTTPS'])
        expect(ports).toContain(container[probe].httpGet.port)
      }
      expect(spec.template.spec.terminationGracePeriodSeconds).toBe(45)
      expect(spec.strategy.rollingUpdate.maxUnavailable).toBe(0)
    }
  })

  it('sets only settings of the app, and reads only Secrets that the set-up writes', () => {
    for (const [name, { metadata, spec }] of pods) {
      const app = metadata.labels['app.kubernetes.io/component'] as keyof typeof SCHEMAS | 'migrate'
      const known = app === 'migrate' ? ['OWNER_URL'] : Object.keys({ ...SCHEMAS[app].properties, ...EVERY_APP })
      for (const { env = [], envFrom = [] } of spec.containers) {
        expect([name, env.filter((one: Any) => !known.includes(one.name))]).toEqual([name, []])
        for (const { secretRef } of envFrom) expect([...secrets.keys()]).toContain(secretRef.name)
        for (const { valueFrom } of env.filter((one: Any) => one.valueFrom))
          expect(secrets.get(valueFrom.secretKeyRef.name)).toHaveProperty([valueFrom.secretKeyRef.key])
      }
      for (const { secret } of spec.volumes.filter((one: Any) => one.secret && !one.secret.optional)) {
        if (OWN_SECRETS.includes(secret.secretName)) continue
        expect([...secrets.keys()]).toContain(secret.secretName)
        for (const { key } of secret.items ?? []) expect(secrets.get(secret.secretName)).toHaveProperty([key])
      }
    }
  })

  it('has a Service and a budget that select the pods of one app, and an autoscaler of a Deployment that exists', () => {
    for (const app of NAMES) {
      const chosen = (selector: object) =>
        pods
          .filter(([, { metadata }]) =>
            Object.entries(selector).every(([key, value]) => metadata.labels[key] === value),
          )
          .map(([, { metadata }]) => metadata.labels['app.kubernetes.io/component'])
      const [service, budget] = ['Service', 'PodDisruptionBudget'].map((kind) =>
        of(kind).find(({ metadata }) => metadata.name === `signalbox-${app}`),
      )
      expect(new Set(chosen(service.spec.selector))).toEqual(new Set([app]))
      expect(new Set(chosen(budget.spec.selector.matchLabels))).toEqual(new Set([app]))
      expect(service.spec.type).toBeUndefined()
    }
    const deployments = of('Deployment')
    expect(new Set(deployments.map(({ spec }) => JSON.stringify(spec.selector))).size).toBe(deployments.length)
    for (const { spec } of [...of('HorizontalPodAutoscaler'), ...of('ScaledObject')]) {
      const scaled = deployments.find(({ metadata }) => metadata.name === spec.scaleTargetRef.name)
      // The server puts 1 in the place of a number that is left out.
      expect(scaled.spec.replicas).toBe(spec.minReplicas ?? spec.minReplicaCount)
    }
  })

  it('lets KEDA count the tasks of each build of the worker, signed in by files of the worker', () => {
    const workers = of('Deployment').filter(({ metadata }) => /-worker/.test(metadata.name))
    const scaled = of('ScaledObject')
    if (!('backlog' in values)) return expect(scaled).toEqual([])
    expect(scaled.map(({ spec }) => spec.scaleTargetRef.name)).toEqual(workers.map(({ metadata }) => metadata.name))
    expect(scaled.map(({ spec }) => spec.triggers[0].metadata)).toMatchObject(
      ['new', 'old'].map((id) => ({
        taskQueue: operationQueue(''),
        workerDeploymentBuildId: id,
        targetQueueSize: '20',
      })),
    )
    const [signIn] = of('TriggerAuthentication')
    expect(scaled[0].spec.triggers[0].authenticationRef.name).toBe(signIn.metadata.name)
    for (const { name, key } of signIn.spec.secretTargetRef) expect(Object.keys(secrets.get(name) ?? {})).toContain(key)
    expect(signIn.spec.secretTargetRef.map(({ parameter }: Any) => parameter)).toEqual(['apiKey', 'ca'])
  })

  it('exposes only the gateway', () => {
    const edges = [...of('Ingress'), ...of('HTTPRoute')]
    const backends = JSON.stringify(edges).match(/"name":"signalbox-[a-z]+"/g) ?? []
    expect(new Set(backends)).toEqual(new Set(edges.length > 0 ? ['"name":"signalbox-gateway"'] : []))
  })

  it('allows only the connections of the table', () => {
    const policies = new Map(of('NetworkPolicy').map(({ metadata, spec }) => [metadata.name, spec]))
    if (policies.size === 0) return expect(values).toHaveProperty('networkPolicy', false)
    expect([...policies.keys()].sort()).toEqual(['migrate', 'none', ...NAMES].map((name) => `signalbox-${name}`).sort())
    const { ingress: to_migration, egress: from_migration } = policies.get('signalbox-migrate')
    expect([to_migration, from_migration.flatMap(({ ports }: Any) => ports.map(({ port }: Any) => port))]).toEqual([
      null,
      [53, 53, SERVER_PORTS.postgres],
    ])
    const { apps = {} } = values as { apps?: Record<string, { egress?: { ports: { port: number }[] }[] }> }
    const OWN_PORTS = Object.fromEntries(
      Object.entries(apps).map(([app, { egress: rules = [] }]) => [
        app,
        rules.flatMap(({ ports }) => ports.map(({ port }) => port)),
      ]),
    )
    const none = policies.get('signalbox-none')
    expect([none.policyTypes, none.ingress, none.egress]).toEqual([['Ingress', 'Egress'], undefined, undefined])
    expect(none.podSelector.matchLabels).not.toHaveProperty(['app.kubernetes.io/component'])
    const peers = (rules: Any[], side: 'from' | 'to') =>
      rules.flatMap((rule) =>
        (rule[side] ?? [])
          .map((one: Any) => one.podSelector?.matchLabels['app.kubernetes.io/component'])
          .filter(Boolean),
      )
    for (const app of NAMES) {
      const { egress, ...policy } = policies.get(`signalbox-${app}`)
      const ingress: Any[] = policy.ingress ?? []
      expect(peers(egress, 'to').sort()).toEqual([...(FACTS[app]?.calls ?? [])].sort())
      const callers = NAMES.filter((name) => FACTS[name]?.calls?.includes(app))
      expect(peers(ingress, 'from').sort()).toEqual(callers.sort())
      const elsewhere = egress.filter(({ to }: Any) => !to?.some((one: Any) => one.podSelector))
      const open_ports = elsewhere.flatMap(({ ports }: Any) => ports.map(({ port }: Any) => port))
      const servers = FACTS[app]?.uses.map((name) => SERVER_PORTS[name]) ?? []
      expect([app, open_ports.sort()]).toEqual([app, [53, 53, ...servers, ...(OWN_PORTS[app] ?? [])].sort()])
      const own = [FACTS[app]?.http, FACTS[app]?.internal]
      for (const { ports } of ingress) for (const { port } of ports) expect(own).toContain(port)
      const open = ingress.filter(({ from }: Any) => !from?.some((one: Any) => one.podSelector))
      const watched = Object.hasOwn(values, 'metrics') ? 1 : 0
      expect([app, open.length]).toEqual([app, (app === 'gateway' ? 1 : 0) + watched])
    }
  })
})

describe('a value', () => {
  const container = (objects: Any[], name: string) =>
    objects.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === name).spec.template.spec
      .containers[0]

  it('places every pod, that of the migration too', () => {
    const pods = {
      ...{ nodeSelector: { pool: 'apps' }, priorityClassName: 'important' },
      tolerations: [{ key: 'pool', operator: 'Exists' }],
    }
    const specs = render({ pods }).filter(({ kind }) => kind === 'Deployment' || kind === 'Job')
    expect(specs).toHaveLength(NAMES.length + 1)
    for (const { spec } of specs) expect(spec.template.spec).toMatchObject(pods)
  })

  it('sends the spans of every app to the collector, and lets them go there', () => {
    const to = [{ namespaceSelector: { matchLabels: { name: 'observe' } } }]
    const objects = render({ telemetry: { url: 'http://collector:4319', port: 4319, to } })
    for (const app of NAMES) {
      const { spec } = objects.find(
        ({ kind, metadata }) => kind === 'NetworkPolicy' && metadata.name === `signalbox-${app}`,
      )
      expect([app, spec.egress]).toEqual([app, expect.arrayContaining([{ to, ports: [{ port: 4319 }] }])])
      const sent = { name: 'SIGNALBOX__TELEMETRY__OTLP_URL', value: 'http://collector:4319' }
      expect([app, container(objects, `signalbox-${app}`).env]).toEqual([app, [sent]])
    }
  })

  it('has the edge connect to the gateway by TLS, or the gateway serve plain text in a trusted network', () => {
    const of = (backendTls: boolean) => {
      const objects = render({ edge: { backendTls, annotations: { own: 'mine' } } })
      const found = (kind: string) =>
        objects.find((one) => one.kind === kind && one.metadata.name === 'signalbox-gateway')
      const { env = [] } = container(objects, 'signalbox-gateway')
      const port = found('Service').spec.ports.find(({ name }: Any) => name === 'http')
      return { env, annotations: found('Ingress').metadata.annotations, protocol: port.appProtocol }
    }
    const backend = { 'nginx.ingress.kubernetes.io/backend-protocol': 'HTTPS' }
    expect(of(true)).toEqual({ env: [], annotations: { own: 'mine', ...backend }, protocol: 'https' })
    expect(of(false)).toEqual({
      env: [
        { name: 'GATEWAY__HTTP__TRUSTED_NETWORK', value: 'true' },
        { name: 'GATEWAY__TLS__CERT_FILE', value: '' },
        { name: 'GATEWAY__TLS__KEY_FILE', value: '' },
      ],
      annotations: { own: 'mine' },
      protocol: undefined,
    })
  })

  it('opens the port of the Sentinels beside that of Redis', () => {
    const ports = (servers: object) =>
      render({ servers })
        .find(({ kind, metadata }) => kind === 'NetworkPolicy' && metadata.name === 'signalbox-session')
        .spec.egress.flatMap((rule: Any) => rule.ports.map(({ port }: Any) => port))
    expect(ports({})).not.toContain(26379)
    expect(ports({ redis: { port: 6379, sentinelPort: 26379 } })).toEqual(expect.arrayContaining([6379, 26379]))
  })

  it('runs agents of pools, with the rights of a sandbox only if it asks, and reaching only what it names', () => {
    const egress = [{ to: [{ ipBlock: { cidr: '10.1.0.0/16' } }], ports: [{ port: 443 }] }]
    const env = { NODE_EXTRA_CA_CERTS: '/etc/signalbox/ca.pem' }
    const plain = { replicas: 1, image: 'agent:1', secret: 'runner', memory: '1Gi', egress, env }
    const agents = { infra: plain, safe: { ...plain, replicas: 3, sandbox: true, claim: 'seal', graceSeconds: 60 } }
    expect(run('lint', { agents }, '--strict')).toContain('0 chart(s) failed')
    const objects = render({ agents })
    const of = (kind: string, pool: string) =>
      objects.find((one) => one.kind === kind && one.metadata.name === `signalbox-agent-${pool}`).spec
    const confined = {
      ...{ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true },
      capabilities: { drop: ['ALL'] },
    }
    const [infra, safe] = ['infra', 'safe'].map((pool) => of('Deployment', pool))
    const rights = (spec: Any) => [spec.template.spec.hostUsers, spec.template.spec.containers[0].securityContext]
    expect(rights(infra)).toEqual([undefined, confined])
    const unconfined = { type: 'Unconfined' }
    const rights_of_sandbox = { seccompProfile: unconfined, appArmorProfile: unconfined, procMount: 'Unmasked' }
    expect(rights(safe)).toEqual([false, { ...confined, ...rights_of_sandbox }])
    expect([safe.replicas, safe.template.spec.terminationGracePeriodSeconds]).toEqual([3, 60])
    const [{ command, env: told }] = infra.template.spec.containers
    expect([command.slice(0, 2), told.slice(1)]).toEqual([
      ['signalbox', 'agent'],
      [
        { name: 'SIGNALBOX_URL', value: 'https://signalbox.example.com' },
        { name: 'SIGNALBOX_TOKEN', valueFrom: { secretKeyRef: { name: 'runner', key: 'token' } } },
        { name: 'NODE_EXTRA_CA_CERTS', value: '/etc/signalbox/ca.pem' },
      ],
    ])
    const state = (spec: Any) => spec.template.spec.volumes.find(({ name }: Any) => name === 'state')
    expect([state(infra), state(safe)]).toEqual([
      { name: 'state', emptyDir: {} },
      { name: 'state', persistentVolumeClaim: { claimName: 'seal' } },
    ])
    for (const [pool, { template }] of [
      ['infra', infra],
      ['safe', safe],
    ] as const) {
      expect(template.spec).toMatchObject({
        automountServiceAccountToken: false,
        securityContext: { runAsUser: 65532 },
      })
      const policy = of('NetworkPolicy', pool)
      expect(template.metadata.labels).toEqual(policy.podSelector.matchLabels)
      expect([policy.ingress, policy.policyTypes]).toEqual([undefined, ['Ingress', 'Egress']])
      expect(policy.egress.slice(1)).toEqual(egress)
    }
  })

  it('names the image by digest, by tag, or per build of the worker', () => {
    expect(container(render(SETS['scaled and watched'] ?? {}), 'signalbox-token').image).toBe(`signalbox@${DIGEST}`)
    const two = render(SETS['two builds of the worker'] ?? {})
    expect(container(two, 'signalbox-worker-new').image).toBe('signalbox:new')
    expect(container(two, 'signalbox-worker-old').image).toBe(`signalbox@${DIGEST}`)
    expect(container(two, 'signalbox-worker-old').env).toEqual([
      { name: 'WORKER__TEMPORAL__BUILD_ID', value: 'old' },
      { name: 'WORKER__TEMPORAL__VERSIONING', value: 'true' },
    ])
  })

  it('of a setting reaches the app as it was written', () => {
    const env = { A: 52_428_800, B: 0.25, C: true, D: '1e6', E: '["10.0.0.0/8"]', F: 0, G: '' }
    const { env: told } = container(render({ apps: { operations: { env } } }), 'signalbox-operations')
    const wanted = Object.entries(env).map(([name, value]) => ({ name, value: String(value) }))
    expect(told).toEqual(wanted)
  })

  it('mounts Secrets and ConfigMaps of a person in one app alone, which only reads them', () => {
    const mounts = [
      { secret: 'corp', at: '/run/sso/secrets' },
      { configMap: 'rules', at: '/run/policy' },
    ]
    const objects = render({ apps: { session: { mounts } } })
    const specOf = (app: string) =>
      objects.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === `signalbox-${app}`).spec.template
        .spec
    const mounted = specOf('session').containers[0].volumeMounts.filter(({ name }: Any) => name.startsWith('own'))
    expect(mounted).toEqual([
      { name: 'own-0', mountPath: '/run/sso/secrets', readOnly: true },
      { name: 'own-1', mountPath: '/run/policy', readOnly: true },
    ])
    expect(specOf('session').volumes).toEqual(
      expect.arrayContaining([
        { name: 'own-0', secret: expect.objectContaining({ secretName: 'corp' }) },
        { name: 'own-1', configMap: expect.objectContaining({ name: 'rules' }) },
      ]),
    )
    expect(JSON.stringify(specOf('identity'))).not.toContain('own-')
  })

  it('that is misspelt is refused with its place', () => {
    expect(() => render({ apps: { worker: { replicsa: 3 } } })).toThrow(/\/apps\/worker.*replicsa/s)
  })
})
