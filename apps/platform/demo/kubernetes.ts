import { parseAllDocuments } from 'yaml'

/** What a manifest says about one workload: its release (image tag) and the workloads it calls. */
export type Workload = { name: string; image: string; release: string; depends_on: string[] }
export type Manifest = {
  workloads: Workload[]
  services: { name: string; port: number | null; workloads: string[] }[]
  /** Addresses that name no service of this file, and edges left out because they would close a circle. */
  notes: string[]
}

type Document = { kind?: string; metadata?: { name?: string }; spec?: Record<string, unknown>; items?: Document[] }
type Container = { image?: string; env?: { name?: string; value?: unknown }[] }
type Template = { metadata?: { labels?: Record<string, string> }; spec?: { containers?: Container[] } }

const NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/
const LIMIT = 200

/** Raised when a file is not what the demo can read; the message says what and where. */
export class ManifestError extends Error {}

/**
 * Reads Deployments and Services. `*_ADDR` environment values (`host:port`, or a URL) name the services a Deployment
 * calls; the services' selectors lead to the workloads behind them. The result is sorted so that callees come first.
 */
export const parseManifest = (text: string): Manifest => {
  const documents = parseAllDocuments(text).flatMap((document) => {
    const [error] = document.errors
    if (error) throw new ManifestError(`not valid YAML: ${error.message.split('\n')[0]}`)
    const value = document.toJS({ maxAliasCount: 50 }) as Document | null
    return value?.kind === 'List' ? (value.items ?? []) : value ? [value] : []
  })
  const deployments = documents.filter((document) => document.kind === 'Deployment')
  if (deployments.length === 0) throw new ManifestError('no Deployment in this file')
  if (deployments.length > LIMIT)
    throw new ManifestError(`${deployments.length} Deployments; the demo takes at most ${LIMIT}`)

  const services = documents
    .filter((document) => document.kind === 'Service')
    .map((service) => serviceOf(service, deployments))
  const notes: string[] = []
  const workloads = deployments.map((deployment): Workload => {
    const name = nameOf(deployment)
    const containers = templateOf(deployment).spec?.containers ?? []
    const image = containers[0]?.image
    if (typeof image !== 'string') throw new ManifestError(`Deployment ${name} has no container image`)
    const depends_on = addressesOf(containers).flatMap((address) => {
      const service = services.find((candidate) => candidate.name === address)
      if (!service) notes.push(`${name} calls ${address}, which is not in this file`)
      return (service?.workloads ?? []).filter((workload) => workload !== name)
    })
    return { name, image, release: releaseOf(image), depends_on: [...new Set(depends_on)].sort() }
  })
  return { workloads: calleesFirst(workloads, notes), services, notes }
}

const nameOf = (document: Document): string => {
  const name = document.metadata?.name
  if (typeof name !== 'string' || !NAME.test(name))
    throw new ManifestError(`a ${document.kind} has no valid name: ${JSON.stringify(name)}`)
  return name
}

const templateOf = (deployment: Document): Template => (deployment.spec?.template ?? {}) as Template

const serviceOf = (service: Document, deployments: Document[]) => {
  const selector = Object.entries((service.spec?.selector ?? {}) as Record<string, string>)
  const [port] = (service.spec?.ports ?? []) as { port?: number }[]
  const selected = deployments.filter((deployment) => {
    const labels = templateOf(deployment).metadata?.labels ?? {}
    return selector.length > 0 && selector.every(([key, value]) => labels[key] === value)
  })
  return {
    name: nameOf(service),
    port: typeof port?.port === 'number' ? port.port : null,
    workloads: selected.map(nameOf),
  }
}

/** `cart:7070`, `cart.shop.svc:7070`, `http://cart:7070/x` all name the service `cart`. */
const addressesOf = (containers: Container[]): string[] =>
  containers.flatMap((container) =>
    (container.env ?? []).flatMap(({ name, value }) => {
      if (!name?.endsWith('_ADDR') || typeof value !== 'string') return []
      const host =
        value
          .replace(/^[a-z]+:\/\//, '')
          .split(/[:/]/)[0]
          ?.split('.')[0] ?? ''
      return NAME.test(host) ? [host] : []
    }),
  )

/** The tag of an image, without its digest; `latest` when it has none. */
const releaseOf = (image: string): string => {
  const name = image.split('@')[0] ?? image
  const tag = /:([\w][\w.-]{0,63})$/.exec(name)?.[1]
  return tag ?? 'latest'
}

const calleesFirst = (workloads: Workload[], notes: string[]): Workload[] => {
  const byName = new Map(workloads.map((workload) => [workload.name, workload]))
  const sorted = new Map<string, Workload>()
  const open = new Set<string>()
  const visit = (workload: Workload) => {
    if (sorted.has(workload.name)) return
    open.add(workload.name)
    const kept = workload.depends_on.filter((name) => {
      if (open.has(name)) {
        notes.push(`${workload.name} and ${name} call each other; the edge from ${workload.name} is left out`)
        return false
      }
      const callee = byName.get(name)
      if (callee) visit(callee)
      return true
    })
    open.delete(workload.name)
    sorted.set(workload.name, { ...workload, depends_on: kept })
  }
  for (const workload of [...workloads].sort((a, b) => a.name.localeCompare(b.name))) visit(workload)
  return [...sorted.values()]
}
