import { createJoiner } from '../apps/shared/process/lines.ts'
import { traceHeaders } from '../apps/shared/process/trace.ts'
import { audienceOf } from '../apps/shared/service/scopes.ts'
import type { ServiceSigner } from '../apps/shared/service/tokens.ts'

const TIMEOUT_MS = 5000

/** ResourceUpdateCommand of the specification. */
export type ResourceUpdateCommand = {
  command_id: string
  idempotency_key: string
  operation_id: string
  resource_id: string
  expected_version: number
  changes: Record<string, unknown>
  evidence_refs?: { uri: string; kind: string; label?: string }[]
}
export type Applied =
  | { status: 'applied'; version: number }
  | { status: 'conflict'; current_version: number; by_operation: string | null; message: string }
  | { status: 'refused'; message: string }

type Answer = { status: number; body: Record<string, unknown> }

/** The catalog did not answer, or cannot now; worth a retry. */
export class CatalogAway extends Error {}

/** Writes node results to the catalog's internal API and reads resource versions. Throws CatalogAway if retryable. */
export const createCatalogWriter = (base_url: string, signer: ServiceSigner) => {
  const send = async (method: 'GET' | 'POST', path: string, body?: unknown): Promise<Answer> => {
    try {
      const response = await fetch(new URL(path, base_url), {
        method,
        headers: {
          authorization: `Bearer ${signer(audienceOf('catalog'))}`,
          'content-type': 'application/json',
          ...traceHeaders(),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(TIMEOUT_MS),
        redirect: 'error',
      })
      return { status: response.status, body: (await response.json()) as Record<string, unknown> }
    } catch (error) {
      throw new CatalogAway(`The catalog is not answering: ${(error as Error).message}`)
    }
  }
  const versions = createJoiner(async (_, asked: readonly string[]) => {
    const resource_ids = [...new Set(asked)]
    const { status, body } = await send('POST', '/internal/v1/resources:versions', { resource_ids })
    if (status !== 200) throw new CatalogAway(`The catalog answered ${status}, ${String(body.code)}`)
    const { items } = body as { items: { resource_id: string; version: number }[] }
    const known = new Map(items.map(({ resource_id, version }) => [resource_id, version]))
    return asked.map((resource_id) => known.get(resource_id))
  })
  return {
    apply: async (command: ResourceUpdateCommand): Promise<Applied> => {
      const path = `/internal/v1/resources/${encodeURIComponent(command.resource_id)}/apply-operation-result`
      const { status, body } = await send('POST', path, command)
      return readAnswer(status, body)
    },
    /** The current state of a resource; undefined if it does not exist. */
    documentOf: async (resource_id: string): Promise<(Record<string, unknown> & { version: number }) | undefined> => {
      const { status, body } = await send('GET', `/internal/v1/resources/${encodeURIComponent(resource_id)}`)
      if (status === 404) return undefined
      if (status !== 200) throw new CatalogAway(`The catalog answered ${status}, ${String(body.code)}`)
      return body as { version: number }
    },
    /** The current version of a resource; undefined if it does not exist. */
    versionOf: (resource_id: string) => versions('', resource_id),
  }
}
export type CatalogWriter = ReturnType<typeof createCatalogWriter>

const readAnswer = (status: number, body: Record<string, unknown>): Applied => {
  if (status === 200) return { status: 'applied', version: Number(body.version) }
  const message = `${String(body.code ?? status)}: ${String(body.detail ?? 'no reason given')}`
  if (status === 409 && body.code === 'version_mismatch') {
    const by = body.last_changed_by as { operation_id?: string | null } | undefined
    return {
      status: 'conflict',
      current_version: Number(body.current_version),
      by_operation: by?.operation_id ?? null,
      message,
    }
  }
  if (isFinal(status, body)) return { status: 'refused', message }
  throw new CatalogAway(`The catalog answered ${status}, ${message}`)
}

/** Refusals of these statuses end without another command: rights, time and load. */
const PASSING = [401, 403, 408, 429]
const isFinal = (status: number, { retryable }: Record<string, unknown>): boolean =>
  status >= 400 && status < 500 && !PASSING.includes(status) && retryable !== true
