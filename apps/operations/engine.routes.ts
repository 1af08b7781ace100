import { appendAudit } from '../../db/operations/facts/state.ts'
import { allow } from '../shared/auth/http.ts'
import { type EncryptingCodec, type Payload, workflowOf } from '../shared/codec/payload.ts'
import { Payloads } from '../shared/contracts/engine/engine.ts'
import { wrongAt } from '../shared/errors.ts'
import { routes } from '../shared/http/routes.ts'
import type { Uses } from './deps.ts'

/** The codec endpoint for the engine's own tools, which are configured with its path without `/decode`. */
export const engineRoutes = routes<Uses<'db' | 'keys' | 'payload_codec'>>('engine', (app, { deps }) => {
  app.post('/v1/engine/codec/decode', {
    operationId: 'decodePayloads',
    summary: 'Decode payloads of the engine',
    description:
      'Decrypts payloads that the engine stores encrypted, for its UI and command line. Plain payloads are returned unchanged. Each call is recorded in the audit log.',
    body: Payloads,
    response: { 200: Payloads },
    preHandler: allow('engine:inspect', { kind: 'R' }),
    handler: async (req) => {
      const sent = req.body.payloads.map(fromText)
      const payloads = await decode(deps.payload_codec, sent)
      const workflows = [...new Set(sent.flatMap((payload) => workflowOf(payload) ?? []))].sort()
      await deps.db.transaction((tx) =>
        appendAudit(tx, deps.keys.audit, {
          actor: `user:${req.caller.user_id}`,
          roles: req.caller.roles,
          action: 'engine.decode',
          object: `workflows:${workflows.join(',').slice(0, 1000)}`,
          outcome: 'done',
          reason: null,
          request_id: String(req.id),
        }),
      )
      return { payloads: payloads.map(toText) }
    },
  })
})

const decode = async (codec: EncryptingCodec | undefined, payloads: Payload[]): Promise<Payload[]> => {
  if (!codec && payloads.some((payload) => workflowOf(payload) !== undefined))
    throw refused('Payloads are encrypted, and operations has no keys: OPERATIONS__TEMPORAL__PAYLOAD_KEYS is not set.')
  try {
    return codec ? await codec.decode(payloads) : payloads
  } catch (error) {
    throw refused(`A payload could not be decoded: ${(error as Error).message}`)
  }
}

const refused = (detail: string) =>
  wrongAt('/payloads', 'cannot be decoded', {
    as: 'undecodable',
    detail,
    hint: 'Send payloads as the engine stores them; the file of keys must hold the key that wrote them.',
  })

const fromText = ({ metadata = {}, data = '' }: Payloads['payloads'][number]): Payload => ({
  metadata: Object.fromEntries(Object.entries(metadata).map(([name, text]) => [name, Buffer.from(text, 'base64')])),
  data: Buffer.from(data, 'base64'),
})

const base64 = (bytes: Uint8Array | null | undefined) => Buffer.from(bytes ?? []).toString('base64')

const toText = ({ metadata, data }: Payload) => ({
  metadata: Object.fromEntries(Object.entries(metadata ?? {}).map(([name, bytes]) => [name, base64(bytes)])),
  data: base64(data),
})
