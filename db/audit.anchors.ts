import { createPublicKey, sign, verify } from 'node:crypto'
import { canonicalJson } from '../apps/shared/data/digest.ts'
import type { PrivateKey } from '../apps/shared/service/keys.ts'

/** The last sealed row of one audit log at a point in time. */
export type SealedHead = { log: string; seal_seq: string; seal_hash: string }
/**
 * The heads of all logs that have sealed rows. `restored`: a person has accepted an earlier state of the database under
 * this restore epoch; `lost` lists the heads of earlier anchors that it lacks.
 */
export type Anchor = { at: string; heads: SealedHead[]; restored?: { epoch: number; lost: SealedHead[] } }

/** An anchor as a line with the signed content verbatim, stored elsewhere to reveal a cut log (reliability.md 5.4). */
export const signAnchor = (anchor: Anchor, { kid, private_key }: PrivateKey): string => {
  const body = canonicalJson(anchor)
  return canonicalJson({ body, kid, signature: sign(null, Buffer.from(body), private_key).toString('base64url') })
}

/** The anchor in the line; `undefined` if this key did not sign it. */
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

/** Heads that one log must still have: for each number the one anchored first, minus those lost in a restore. */
export const anchoredHeads = (
  anchors: readonly Anchor[],
  log: string,
): Map<string, { at: string; seal_hash: string }> => {
  const heads = new Map<string, { at: string; seal_hash: string }>()
  for (const { at, heads: said, restored } of anchors.toSorted((a, b) => a.at.localeCompare(b.at))) {
    for (const lost of restored?.lost ?? [])
      if (lost.log === log && heads.get(lost.seal_seq)?.seal_hash === lost.seal_hash) heads.delete(lost.seal_seq)
    // A later anchor may cover a log that had already been changed.
    for (const { log: of, seal_seq, seal_hash } of said)
      if (of === log && !heads.has(seal_seq)) heads.set(seal_seq, { at, seal_hash })
  }
  return heads
}
