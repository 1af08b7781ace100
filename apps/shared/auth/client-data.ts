import { objectIn } from '../data/pointer.ts'

/** What a browser says that a passkey answered (WebAuthn, client data): a claim until its signature is verified. Undefined if it is no JSON object. */
export const clientDataOf = (client_data: string): { challenge?: unknown } | undefined =>
  objectIn(Buffer.from(client_data, 'base64url').toString('utf8'))
