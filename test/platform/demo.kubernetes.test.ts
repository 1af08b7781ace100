import { describe, expect, it } from 'vitest'
import { register } from '../../apps/platform/demo/catalog.ts'
import { ApiError, type Person } from '../../apps/platform/demo/client.ts'
import { ManifestError, parseManifest } from '../../apps/platform/demo/kubernetes.ts'

const deployment = (name: string, env: Record<string, string> = {}, image = `registry/${name}:1.0.0`) => `
apiVersion: apps/v1
kind: Deployment
metadata: { name: ${name} }
spec:
  template:
    metadata: { labels: { app: ${name} } }
    spec:
      containers:
        - image: ${image}
          env: [${Object.entries(env)
            .map(([key, value]) => `{ name: ${key}, value: "${value}" }`)
            .join(', ')}]
`
const service = (name: string, app = name) => `
kind: Service
metadata: { name: ${name} }
spec: { selector: { app: ${app} }, ports: [{ port: 80 }] }
`
const manifest = (...documents: string[]) => documents.join('\n---\n')

describe('reading a Kubernetes manifest', () => {
  it('puts callees first, whatever the order and form of the addresses', () => {
    const text = manifest(
      deployment('web', { CART_ADDR: 'cart:7070', API_ADDR: 'http://pay.shop.svc:80/x', HOME: '/root' }),
      deployment('cart', { PAY_ADDR: 'pay:80' }),
      deployment('pay'),
      service('cart'),
      service('pay'),
      service('web'),
    )
    const { workloads } = parseManifest(text)
    expect(workloads.map(({ name, depends_on }) => [name, depends_on])).toEqual([
      ['pay', []],
      ['cart', ['pay']],
      ['web', ['cart', 'pay']],
    ])
  })

  it('takes the tag as the release, without digest and registry port', () => {
    const release = (image: string) => parseManifest(deployment('a', {}, image)).workloads[0]?.release
    expect(release('host:5000/a')).toBe('latest')
    expect(release('host:5000/a:v2@sha256:00')).toBe('v2')
    expect(release('a:alpine')).toBe('alpine')
  })

  it('cuts a cycle at one edge and says so', () => {
    const { workloads, notes } = parseManifest(
      manifest(deployment('a', { B_ADDR: 'b:1' }), deployment('b', { A_ADDR: 'a:1' }), service('a'), service('b')),
    )
    expect(workloads.flatMap((workload) => workload.depends_on)).toHaveLength(1)
    expect(notes).toEqual([expect.stringContaining('call each other')])
  })

  it('names an unknown address', () => {
    expect(parseManifest(deployment('a', { X_ADDR: 'elsewhere:1' })).notes).toEqual([
      'a calls elsewhere, which is not in this file',
    ])
  })

  it.each([
    ['no Deployment', service('a'), /no Deployment/],
    ['broken YAML', 'a: [1', /not valid YAML/],
    ['a hostile name', deployment('"../x"'), /no valid name/],
    ['no image', 'kind: Deployment\nmetadata: { name: a }', /no container image/],
  ])('refuses a file with %s, naming the fault', (_what, text, message) => {
    expect(() => parseManifest(text)).toThrow(ManifestError)
    expect(() => parseManifest(text)).toThrow(message)
  })
})

describe('registering the resources of a manifest', () => {
  it('after an edit accepts the known resource, under a key that no other body has had', async () => {
    const names: string[] = []
    const post = async (_path: string, _body: unknown, name = '') => {
      names.push(name)
      if (names.length > 2) throw new ApiError('POST', 409, { category: 'conflict', code: 'already_exists' })
    }
    const admin = { post } as unknown as Person
    const host = (release: string) => ({ resource_id: 'shop.web', desired_state: { release } })
    for (const release of ['1.0.0', '1.0.0', '2.0.0']) await register(admin, host(release))
    expect(names[1]).toBe(names[0])
    expect(names[2]).not.toBe(names[0])
  })
})
