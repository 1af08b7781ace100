import { createHash } from 'node:crypto'

/** A gate's subject as its reader gets it; here on purpose by none of the product's code. */
export type BoundSubject = {
  asked: { requester: { name: string }; reason: string; ticket: string | null; plan_hash: string }
  releases: { target_id: string | null; step: string | null; batch: string | null }[]
  changes: { name: string; type_key: string; region_id: string | null }[]
}

/** The digest by RFC 8785 and SHA-256: members in the order of their UTF-16 code units. */
export const digestByHand = (subject: unknown): string =>
  `sha256:${createHash('sha256').update(canonical(subject)).digest('hex')}`

const canonical = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  const sorted = members.sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${sorted.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join(',')}}`
}

/** The lines that a page draws as bound: who asks and why; how many resources change by which steps; where they are. */
export const boundLines = ({ asked, releases, changes }: BoundSubject): string[] => {
  const steps = [...new Set(releases.flatMap(({ target_id, step }) => (target_id && step ? [step] : [])))]
  const sizes = new Map<string, Set<string>>()
  for (const { target_id, batch } of releases)
    if (target_id && batch) sizes.set(batch, (sizes.get(batch) ?? new Set()).add(target_id))
  const [type] = new Set(changes.map(({ type_key }) => type_key))
  const regions = [...new Set(changes.map(({ region_id }) => region_id))]
  const batches = [...sizes.values()].map(({ size }) => size)
  return [
    `${asked.requester.name}: “${asked.reason}”${asked.ticket ? ` · ${asked.ticket}` : ''} · plan ${asked.plan_hash.slice(7, 13)}`,
    `${changes.length} changes: ${steps.join(', ')}`,
    `${changes.length} × ${type} in ${regions.join(' and ')}${batches.length > 1 ? ` · batches ${batches.join(', ')}` : ''}`,
  ]
}
