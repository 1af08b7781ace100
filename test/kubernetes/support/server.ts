import { type ChildProcess, spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { request as ask } from 'node:https'
import { join } from 'node:path'
import { freePort } from '../../support/ports.ts'
import { until } from '../../support/until.ts'

const must = (name: string): string => {
  const value = process.env[name]
  if (!value) throw new Error(`${name} is not set: run "npm run test:kubernetes".`)
  return value
}
export const TOOLS = () => ({ program: must('KUBE_KUBECTL'), helm: must('KUBE_HELM') })

const TOKENS = { admin: 'admin-3f9c2b7a55e1', agent: 'agent-94d1c0aa7be2' }
// biome-ignore lint/suspicious/noExplicitAny: objects of a server that is not ours
export type Any = any

/** A real kube-apiserver on a real etcd. No controller runs: where readiness matters, the test writes the status. */
export const startKubernetes = async (folder: string) => {
  const place = mkdtempSync(join(folder, 'kube-'))
  const [client, peer, port] = [await freePort(), await freePort(), await freePort()]
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  writeFileSync(join(place, 'sa.key'), privateKey.export({ type: 'pkcs8', format: 'pem' }))
  writeFileSync(join(place, 'sa.pub'), publicKey.export({ type: 'spki', format: 'pem' }))
  const rows = Object.entries(TOKENS).map(([name, token]) => `${token},${name},${name},"system:masters"`)
  writeFileSync(join(place, 'tokens.csv'), `${rows.join('\n')}\n`)
  const children: ChildProcess[] = []
  let said = ''
  const start = (program: string, args: string[]) => {
    const child = spawn(program, args, {
      cwd: place,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env.PATH },
    })
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk) => {
        said = (said + chunk).slice(-20_000)
      })
    children.push(child)
  }
  const etcd = `http://127.0.0.1:${client}`
  const own = `http://127.0.0.1:${peer}`
  start(must('KUBE_ETCD'), [
    ...['--data-dir', join(place, 'etcd'), '--listen-client-urls', etcd, '--advertise-client-urls', etcd],
    ...['--listen-peer-urls', own, '--initial-advertise-peer-urls', own, '--initial-cluster', `default=${own}`],
  ])
  start(must('KUBE_APISERVER'), [
    ...[`--etcd-servers=${etcd}`, `--secure-port=${port}`, '--bind-address=127.0.0.1'],
    ...[`--cert-dir=${join(place, 'certs')}`, '--service-cluster-ip-range=10.0.0.0/24'],
    ...['--service-account-issuer=https://kubernetes.default.svc', '--authorization-mode=RBAC'],
    ...[`--service-account-key-file=${join(place, 'sa.pub')}`, `--token-auth-file=${join(place, 'tokens.csv')}`],
    ...[`--service-account-signing-key-file=${join(place, 'sa.key')}`, '--disable-admission-plugins=ServiceAccount'],
  ])
  const request = (method: string, path: string, body?: object, type = 'application/json') =>
    new Promise<{ code: number; body: Any }>((resolve, reject) => {
      const headers = { authorization: `Bearer ${TOKENS.admin}`, ...(body && { 'content-type': type }) }
      const options = {
        host: '127.0.0.1',
        port,
        method,
        path,
        headers,
        rejectUnauthorized: false,
        agent: false as const,
      }
      const req = ask(options, (res) => {
        let text = ''
        res.on('data', (chunk) => (text += chunk))
        res.on('end', () =>
          resolve({ code: res.statusCode ?? 0, body: text.startsWith('{') ? JSON.parse(text) : text }),
        )
      })
      req.on('error', reject)
      req.end(body && JSON.stringify(body))
    })
  await until(
    () =>
      request('GET', '/readyz').then(
        ({ code }) => code === 200,
        () => false,
      ),
    { timeout_ms: 120_000, what: 'kube-apiserver ready' },
  ).catch((error) => {
    throw new Error(`${error.message}: ${said.slice(-1500)}`)
  })
  await until(async () => (await request('GET', '/api/v1/namespaces/kube-system')).code === 200)
  const ok = async (method: string, path: string, body?: object, type?: string): Promise<Any> => {
    const answer = await request(method, path, body, type)
    if (answer.code >= 300) throw new Error(`${method} ${path}: ${answer.body.message ?? answer.code}`)
    return answer.body
  }
  const ca = readFileSync(join(place, 'certs/apiserver.crt')).toString('base64')
  const config = (server: string) => ({
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'c' },
    clusters: [{ name: 'c', cluster: { server, 'certificate-authority-data': ca } }],
    users: [{ name: 'u', user: { token: TOKENS.agent } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
  })
  const kubeconfig = join(place, 'kubeconfig')
  writeFileSync(kubeconfig, JSON.stringify(config(`https://127.0.0.1:${port}`)))
  const nowhere = join(place, 'nowhere')
  writeFileSync(nowhere, JSON.stringify(config('https://127.0.0.1:1')))
  return {
    ...{ kubeconfig, nowhere, request, ok, token: TOKENS.agent },
    get: async (path: string): Promise<Any> => {
      const { code, body } = await request('GET', path)
      return code === 404 ? undefined : body
    },
    patch: (path: string, body: object) => ok('PATCH', path, body, 'application/merge-patch+json'),
    /** How often each object was written since it was made, as the database counts: name to number. */
    writesOf: async (plural: string, namespace: string): Promise<Record<string, number>> => {
      const prefix = `/registry/${plural}/${namespace}/`
      const [key, range_end] = [prefix, `${prefix.slice(0, -1)}0`].map((text) => Buffer.from(text).toString('base64'))
      const body = JSON.stringify({ key, range_end, keys_only: true })
      const { kvs = [] } = (await (await fetch(`${etcd}/v3/kv/range`, { method: 'POST', body })).json()) as Any
      return Object.fromEntries(
        kvs.map((kv: Any) => [Buffer.from(kv.key, 'base64').toString().slice(prefix.length), Number(kv.version)]),
      )
    },
    namespace: (name: string) => ok('POST', '/api/v1/namespaces', { metadata: { name } }),
    stop: async () => {
      await Promise.all(
        children.map((child) => {
          child.kill('SIGKILL')
          return child.exitCode === null && child.signalCode === null ? once(child, 'exit') : undefined
        }),
      )
    },
  }
}
export type Kubernetes = Awaited<ReturnType<typeof startKubernetes>>
