import { containersOf, hostsIn, manifestsOf, portOf, releaseOf, selects } from '../../cli/import/manifest.ts'
import { parseSource, SourceError } from '../../cli/import/source.ts'

/** The manifest of one workload: its release (image tag) and the workloads it calls. */
export type Workload = { name: string; image: string; release: string; depends_on: string[] }
export type Manifest = {
  workloads: Workload[]
  services: { name: string; port: number | null; workloads: string[] }[]
  /** Addresses that name no service of this file, and edges left out because they would close a cycle. */
  notes: string[]
}

const NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/
const LIMIT = 200

/** Thrown if the demo cannot read a file; the message says why and where. */
export class ManifestError extends Error {}

/**
 * Reads Deployments and Services. `*_ADDR` environment values (`host:port`, or a URL) name the services that a
 * Deployment calls; the services' selectors lead to the workloads behind them. The result is sorted with callees first.
 */
export const parseManifest = (text: string): Manifest => {
  const documents = readDocuments(text)
  const deployments = documents.filter(({ kind }) => kind === 'Deployment')
  if (deployments.length === 0) throw new ManifestError('no Deployment in this file')
  if (deployments.length > LIMIT)
    throw new ManifestError(`${deployments.length} Deployments; the demo takes at most ${LIMIT}`)
  for (const { kind, name } of documents)
    if ((kind === 'Deployment' || kind === 'Service') && !NAME.test(name))
      throw new ManifestError(`a ${kind} has no valid name: ${JSON.stringify(name)}`)

  const services = documents
    .filter(({ kind }) => kind === 'Service')
    .map((service) => ({
      name: service.name,
      port: portOf(service) ?? null,
      workloads: deployments.filter((deployment) => selects(service, deployment)).map(({ name }) => name),
    }))
  const notes: string[] = []
  const workloads = deployments.map((deployment): Workload => {
    const { name } = deployment
    const image = containersOf(deployment)[0]?.image
    if (typeof image !== 'string') throw new ManifestError(`Deployment ${name} has no container image`)
    const depends_on = hostsIn(deployment, (variable) => variable.endsWith('_ADDR')).flatMap(({ host }) => {
      const service = services.find((candidate) => candidate.name === host)
      if (!service) notes.push(`${name} calls ${host}, which is not in this file`)
      return (service?.workloads ?? []).filter((workload) => workload !== name)
    })
    return { name, image, release: releaseOf(image).slice(0, 64), depends_on: [...new Set(depends_on)].sort() }
  })
  return { workloads: calleesFirst(workloads, notes), services, notes }
}

const readDocuments = (text: string) => {
  try {
    return manifestsOf(parseSource(text).documents)
  } catch (error) {
    if (error instanceof SourceError) throw new ManifestError(error.message)
    throw error
  }
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
