import { objectIn } from '../data/pointer.ts'

/**
 * Parses the browser's statement of what a passkey answered (WebAuthn, client data): only a claim until its signature
 * is verified. `undefined` if it is not a JSON object.
 */
export const clientDataOf = (client_data: string): { challenge?: unknown } | undefined =>
  objectIn(Buffer.from(client_data, 'base64url').toString('utf8'))
