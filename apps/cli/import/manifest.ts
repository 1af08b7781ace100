import { type Fields, fieldsOf, isFields, listOf, textOf } from './items.ts'
import { SourceError } from './source.ts'

/** Kubernetes objects as they appear in files: shared by the importer and the demo. */
export type Manifest = Fields & {
  kind: string
  name: string
  namespace: string
  /** Each creation generates a new name, so the name identifies no existing object. */
  generated: boolean
}

const NAME = /^[a-z0-9]([a-z0-9._:-]{0,251}[a-z0-9])?$/i

/** Every object of the documents, with lists unfolded. A document without a kind is not a manifest. */
export const manifestsOf = (documents: readonly unknown[]): Manifest[] =>
  documents.flatMap((one, index) => unfold(one, 0, `document ${index + 1}`))

const unfold = (document: unknown, depth: number, place: string): Manifest[] => {
  const kind = isFields(document) ? textOf(document.kind) : undefined
  if (!isFields(document) || kind === undefined)
    throw new SourceError(`${place} has no kind: it is not a Kubernetes manifest`)
  if (depth < 3 && kind.endsWith('List') && Array.isArray(document.items))
    return document.items.flatMap((item, index) => unfold(item, depth + 1, `${place}, item ${index + 1}`))
  const { name, generateName, namespace } = fieldsOf(document.metadata)
  const called = textOf(name) ?? textOf(generateName)
  if (called === undefined || called.length > 253 || !NAME.test(called.replace(/-$/, '')))
    throw new SourceError(
      `a ${kind.slice(0, 63)} (${place}) has no valid name: ${JSON.stringify(name ?? null).slice(0, 80)}`,
    )
  return [
    {
      ...document,
      kind,
      name: called,
      namespace: textOf(namespace) ?? 'default',
      generated: textOf(name) === undefined,
    },
  ]
}

export const specOf = (manifest: Fields): Fields => fieldsOf(manifest.spec)
const templateOf = (manifest: Fields): Fields => fieldsOf(specOf(manifest).template)
export const containersOf = (manifest: Fields): Fields[] => {
  const pod = fieldsOf(templateOf(manifest).spec)
  return listOf(pod.containers).map(fieldsOf)
}

export const selects = (service: Manifest, workload: Manifest): boolean => {
  const selector = Object.entries(fieldsOf(specOf(service).selector))
  const labels = fieldsOf(fieldsOf(templateOf(workload).metadata).labels)
  return (
    service.namespace === workload.namespace &&
    selector.length > 0 &&
    selector.every(([key, value]) => labels[key] === value)
  )
}

export const portOf = (service: Manifest): number | undefined => {
  const { port } = fieldsOf(listOf(specOf(service).ports)[0])
  return typeof port === 'number' && Number.isInteger(port) && port > 0 && port < 65_536 ? port : undefined
}

/** `cart:7070`, `cart.shop.svc:7070`, `http://cart:7070/x`: the host that may name a service, and its namespace. */
export const hostsIn = (workload: Manifest, only: (name: string) => boolean): { host: string; namespace: string }[] =>
  containersOf(workload).flatMap((container) =>
    listOf(container.env).flatMap((variable) => {
      const { name, value } = fieldsOf(variable)
      if (typeof value !== 'string' || !only(String(name))) return []
      const [host = '', namespace] = (value.replace(/^[a-z]+:\/\//, '').split(/[:/]/, 1)[0] ?? '').split('.')
      return /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(host)
        ? [{ host, namespace: namespace || workload.namespace }]
        : []
    }),
  )

/** The tag of an image, without its digest; `latest` if it has none. */
export const releaseOf = (image: string): string =>
  /:([\w][\w.-]{0,127})$/.exec(image.split('@')[0] ?? image)?.[1] ?? 'latest'
