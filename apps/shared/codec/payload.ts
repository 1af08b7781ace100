import { fileURLToPath } from 'node:url'
import type { DataConverter, Payload, PayloadCodec } from '@temporalio/common'
import Type from 'typebox'
import { Value } from 'typebox/value'
import { ConfigError, readJsonFile } from '../config.ts'
import { seal, unseal } from './seal.ts'

export type { Payload }

/** The keys of payloads: `current` encrypts, all decrypt. A key is 32 bytes in base64url. */
const KeyFile = Type.Object(
  {
    current: Type.String({ minLength: 1 }),
    keys: Type.Record(
      Type.String({ pattern: '^[A-Za-z0-9._-]{1,64}$' }),
      Type.String({ pattern: '^[A-Za-z0-9_-]{43}$' }),
    ),
  },
  { additionalProperties: false },
)

const ENCODING = 'binary/encrypted'

const text = (bytes: Uint8Array | null | undefined): string => Buffer.from(bytes ?? []).toString('utf8')

/** Returns which workflow an encrypted payload belongs to; `undefined` for a plain one. */
export const workflowOf = ({ metadata }: Payload): string | undefined =>
  text(metadata?.encoding) === ENCODING ? text(metadata?.['workflow-id']) : undefined

/**
 * Encrypts the payloads that the engine stores (reliability.md 5.6): AES-256-GCM with a random IV. Key id and workflow
 * id are in the metadata and are authenticated, so a payload moved to another workflow does not decode. Plain payloads
 * are read unchanged, so that operations that began before there were keys continue.
 */
export class EncryptingCodec implements PayloadCodec {
  readonly #current: string
  readonly #keys: ReadonlyMap<string, Buffer>

  constructor({ current, keys }: Type.Static<typeof KeyFile>) {
    this.#current = current
    this.#keys = new Map(Object.entries(keys).map(([id, key]) => [id, Buffer.from(key, 'base64url')]))
  }

  encode: PayloadCodec['encode'] = async (payloads, context) =>
    payloads.map((payload) => this.#encrypt(payload, context?.workflowId ?? ''))

  decode: PayloadCodec['decode'] = async (payloads, context) =>
    payloads.map((payload) => this.#decrypt(payload, context?.workflowId))

  #key(id: string): Buffer {
    const key = this.#keys.get(id)
    if (!key)
      throw new Error(
        `The key file has no payload key ${id}: it must stay there while payloads that it encrypted exist.`,
      )
    return key
  }

  #encrypt({ metadata, data }: Payload, workflow_id: string): Payload {
    const plain = Buffer.concat([header(metadata), data ?? Buffer.alloc(0)])
    return {
      metadata: {
        encoding: Buffer.from(ENCODING),
        'encryption-key-id': Buffer.from(this.#current),
        'workflow-id': Buffer.from(workflow_id),
      },
      data: seal(this.#key(this.#current), bound(this.#current, workflow_id), plain),
    }
  }

  #decrypt(payload: Payload, expected: string | undefined): Payload {
    const workflow_id = workflowOf(payload)
    if (workflow_id === undefined) return payload
    if (expected !== undefined && workflow_id !== expected)
      throw new Error(`A payload of workflow ${workflow_id} was found in ${expected}.`)
    const key_id = text(payload.metadata?.['encryption-key-id'])
    const plain = unseal(this.#key(key_id), bound(key_id, workflow_id), Buffer.from(payload.data ?? []))
    const end = plain.indexOf('\n')
    return { metadata: metadataOf(plain.subarray(0, end)), data: plain.subarray(end + 1) }
  }
}

const bound = (key_id: string, workflow_id: string) => JSON.stringify([key_id, workflow_id])

/** Returns the metadata of the plain payload, as one line before its data. */
const header = (metadata: Payload['metadata']): Buffer =>
  Buffer.from(
    `${JSON.stringify(Object.entries(metadata ?? {}).map(([name, value]) => [name, Buffer.from(value).toString('base64')]))}\n`,
  )

const metadataOf = (line: Buffer): Record<string, Uint8Array> =>
  Object.fromEntries(
    (JSON.parse(line.toString('utf8')) as [string, string][]).map(([name, value]) => [
      name,
      Buffer.from(value, 'base64'),
    ]),
  )

/** The setting that names the file of keys. */
export const payloadKeys = () =>
  Type.Optional(
    Type.String({
      minLength: 1,
      description: 'JSON file with the keys that encrypt what the engine stores. Without it payloads are plain.',
    }),
  )

/** Reads the payload keys from the file that `variable` names; `undefined` without a file. */
export const loadPayloadCodec = (variable: string, file: string | undefined): EncryptingCodec | undefined => {
  if (file === undefined) return undefined
  const found = readJsonFile<unknown>(variable, file)
  if (!Value.Check(KeyFile, found) || found.keys[found.current] === undefined)
    throw new ConfigError(
      `${variable} names ${file}, which must hold {"current": "<key id>", "keys": {"<key id>": "<32 bytes in base64url>"}}.`,
    )
  return new EncryptingCodec(found)
}

/** The data converter of client and worker: with keys, messages and stacks of failures are also hidden. */
export const dataConverterOf = (codec: EncryptingCodec | undefined): DataConverter | undefined =>
  codec && { payloadCodecs: [codec], failureConverterPath: FAILURES }

/** A path, because the bundle of the workflows loads its own copy. */
export const FAILURES = fileURLToPath(new URL('./failures.ts', import.meta.url))
