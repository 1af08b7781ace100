import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { seal, unseal } from '../../shared/codec/seal.ts'
import { deriveKey } from '../../shared/data/digest.ts'

export type NotifyKeys = ReturnType<typeof createNotifyKeys>

/** Seals destinations' addresses and secrets, and derives their confirmation codes. The first key seals; any opens. */
export const createNotifyKeys = (secrets: readonly Uint8Array[]) => {
  const keys = secrets.map((secret) => ({
    seal: deriveKey(secret, 'notify-seal'),
    code: deriveKey(secret, 'notify-code'),
    hook: deriveKey(secret, 'schedule-hook'),
  }))
  const [newest] = keys
  if (!newest) throw new Error('a key is needed')
  /** Eight digits that are stored nowhere: only the mail's reader has them. */
  const codeBy = (key: Uint8Array, destination_id: string) =>
    (createHmac('sha256', key).update(destination_id).digest().readUIntBE(0, 6) % 100_000_000)
      .toString()
      .padStart(8, '0')
  return {
    seal: (destination_id: string, text: string): Buffer => seal(newest.seal, destination_id, text),
    /** `undefined` if it was sealed with a key that no longer exists. */
    open: (destination_id: string, sealed: Buffer): string | undefined => {
      for (const key of keys) {
        try {
          return unseal(key.seal, destination_id, sealed).toString('utf8')
        } catch {}
      }
      return undefined
    },
    /** A schedule's webhook secrets under each key, newest first: derived again each time and stored nowhere. */
    hookSecrets: (schedule_id: string, number: number): string[] =>
      keys.map(({ hook }) => `whsec_${createHmac('sha256', hook).update(`${schedule_id}:${number}`).digest('base64')}`),
    codeOf: (destination_id: string): string => codeBy(newest.code, destination_id),
    isCode: (destination_id: string, code: string): boolean =>
      keys.some((key) => timingSafeEqual(Buffer.from(codeBy(key.code, destination_id)), Buffer.from(code))),
  }
}

/** In the format of Standard Webhooks. */
export const newSecret = (): string => `whsec_${randomBytes(24).toString('base64')}`
