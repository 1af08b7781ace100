import { createPublicKey, sign, verify } from 'node:crypto'
import { canonicalJson } from '../apps/shared/data/digest.ts'
import type { PrivateKey } from '../apps/shared/service/keys.ts'

/** The last sealed row of one audit log at a time. */
export type SealedHead = { log: string; seal_seq: string; seal_hash: string }
/**
 * The heads of all logs that have sealed rows. `restored`: a person has accepted an earlier state of the database under
 * this restore epoch; `lost` are the heads of earlier anchors that are not in it.
 */
export type Anchor = { at: string; heads: SealedHead[]; restored?: { epoch: number; lost: SealedHead[] } }

/**
 * An anchor as one line of text: what is signed stands in it as it was signed. It is kept outside the database, so that
 * a tail that is cut off there is missed here (reliability.md 5.4).
 */
export const signAnchor = (anchor: Anchor, { kid, private_key }: PrivateKey): string => {
  const body = canonicalJson(anchor)
  return canonicalJson({ body, kid, signature: sign(null, Buffer.from(body), private_key).toString('base64url') })
}

/** What the line says; undefined when this key did not sign it. */
export const readAnchor = (line: string, { private_key }: PrivateKey): Anchor | undefined => {
  try {
    const { body, signature } = JSON.parse(line) as { body: string; signature: string }
    const signed = Buffer.from(signature, 'base64url')
    if (!verify(null, Buffer.from(body), createPublicKey(private_key), signed)) return undefined
    return JSON.parse(body) as Anchor
  } catch {
    return undefined
  }
}

/** Heads of one log that must stand where they stood: of each number what was anchored first, less what a restore lost. */
export const anchoredHeads = (
  anchors: readonly Anchor[],
  log: string,
): Map<string, { at: string; seal_hash: string }> => {
  const heads = new Map<string, { at: string; seal_hash: string }>()
  for (const { at, heads: said, restored } of anchors.toSorted((a, b) => a.at.localeCompare(b.at))) {
    for (const lost of restored?.lost ?? [])
      if (lost.log === log && heads.get(lost.seal_seq)?.seal_hash === lost.seal_hash) heads.delete(lost.seal_seq)
    // A later anchor may have been made of a log that was changed by then.
    for (const { log: of, seal_seq, seal_hash } of said)
      if (of === log && !heads.has(seal_seq)) heads.set(seal_seq, { at, seal_hash })
  }
  return heads
}
