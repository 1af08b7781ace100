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

/** The catalog did not answer, or cannot now: worth another try. */
export class CatalogAway extends Error {}

/** Writes of node results to the catalog's internal API. Throws CatalogAway when it should be tried again. */
export const createCatalogWriter = (base_url: string, signer: ServiceSigner) => ({
  apply: async (command: ResourceUpdateCommand): Promise<Applied> => {
    const path = `/internal/v1/resources/${encodeURIComponent(command.resource_id)}/apply-operation-result`
    let response: Response
    let body: Record<string, unknown>
    try {
      response = await fetch(new URL(path, base_url), {
        method: 'POST',
        headers: { authorization: `Bearer ${signer(audienceOf('catalog'))}`, 'content-type': 'application/json' },
        body: JSON.stringify(command),
        signal: AbortSignal.timeout(TIMEOUT_MS),
        redirect: 'error',
      })
      body = (await response.json()) as Record<string, unknown>
    } catch (error) {
      throw new CatalogAway(`The catalog did not answer: ${(error as Error).message}`)
    }
    return readAnswer(response.status, body)
  },
})
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
  if (status === 404 || status === 422 || status === 400) return { status: 'refused', message }
  throw new CatalogAway(`The catalog answered ${status}, ${message}`)
}
