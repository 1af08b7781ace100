import { canonicalJson } from './canonical.ts'

/**
 * Returns `sha256:<64 hex>` over the canonical JSON of a value, by WebCrypto, which browsers and Node share. Gives the
 * same text as the servers' `digest`. In a browser it needs a secure context (https or localhost).
 */
export const digestOf = async (value: unknown): Promise<string> => {
  const bytes = new TextEncoder().encode(canonicalJson(value))
  const hash = new Uint8Array(await globalThis.crypto.subtle.digest('SHA-256', bytes))
  return `sha256:${Array.from(hash, (byte) => byte.toString(16).padStart(2, '0')).join('')}`
}

/** Returns a digest for human eyes: the first eight digits, as the command line client shows them. */
export const shortDigest = (digest: string): string => digest.replace(/^sha256:/, '').slice(0, 8)

/** Who proposes a patch, and why. */
type PatchAsked = { proposer: { kind: string; id: string; name: string }; reason: string; ticket: string | null }
type Bound = {
  patch_id: string
  base_revision: number
  changes: readonly unknown[]
  result_hash: string
  asked: PatchAsked | null
}

/** What a vote on a patch is bound to; `asked` is null where it was proposed before that was bound. */
export const patchSubject = ({ patch_id, base_revision, changes, result_hash, asked }: Bound) => ({
  ...{ patch_id, base_revision, changes, result_hash },
  ...(asked && { v: 2, asked }),
})
