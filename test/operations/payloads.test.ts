import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Payload } from '@temporalio/common'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { EncryptingCodec, loadPayloadCodec } from '../../apps/shared/codec/payload.ts'
import { ConfigError } from '../../apps/shared/config.ts'
import { must, type Platform, startPlatform } from './support/platform.ts'

const key = () => randomBytes(32).toString('base64url')
const at = (workflowId: string) => ({ type: 'workflow', namespace: 'default', workflowId }) as const
const plain: Payload = { metadata: { encoding: Buffer.from('json/plain') }, data: Buffer.from('{"a":"s3cret\\n"}') }
const dir = mkdtempSync(join(tmpdir(), 'signalbox-keys-'))
afterAll(() => rmSync(dir, { recursive: true }))

describe('payloads in the engine', () => {
  const [old, fresh] = [key(), key()]
  const before = new EncryptingCodec({ current: 'old', keys: { old } })
  const after = new EncryptingCodec({ current: 'new', keys: { old, new: fresh } })

  it('are unreadable, differ each time, and decode unchanged', async () => {
    const sealed = await before.encode([plain, plain, {}], at('w1'))
    expect(JSON.stringify(sealed)).not.toContain(plain.data?.toString())
    expect(Buffer.concat(sealed.map(({ data }) => Buffer.from(data ?? [])))).not.toContain('s3cret')
    expect(sealed[0]?.data).not.toEqual(sealed[1]?.data)
    expect(await before.decode(sealed, at('w1'))).toEqual([plain, plain, { metadata: {}, data: Buffer.alloc(0) }])
  })

  it('survive a key rotation, and unencrypted ones from before are still read', async () => {
    const sealed = await before.encode([plain], at('w1'))
    expect(await after.decode([...sealed, plain], at('w1'))).toEqual([plain, plain])
    const [newer] = await after.encode([plain], at('w1'))
    await expect(before.decode([newer as Payload], at('w1'))).rejects.toThrow('no payload key new')
  })

  it('do not decode if a byte was changed or they were moved to another workflow', async () => {
    const [sealed] = (await before.encode([plain], at('w1'))) as [Payload]
    await expect(before.decode([sealed], at('w2'))).rejects.toThrow('was found in w2')
    const moved = { ...sealed, metadata: { ...sealed.metadata, 'workflow-id': Buffer.from('w2') } }
    await expect(before.decode([moved], at('w2'))).rejects.toThrow()
    const data = Buffer.from(sealed.data ?? [])
    for (let i = 0; i < data.length; i++) {
      const changed = Buffer.from(data)
      changed[i] = (changed[i] ?? 0) ^ 1
      await expect(before.decode([{ ...sealed, data: changed }], at('w1')), `byte ${i}`).rejects.toThrow()
    }
    for (const length of [0, 5, 12, 20, 28])
      await expect(before.decode([{ ...sealed, data: data.subarray(0, length) }], at('w1'))).rejects.toThrow()
  })

  it.each([
    ['no JSON', '{'],
    ['no keys', '{}'],
    ['a short key', JSON.stringify({ current: 'a', keys: { a: 'abc' } })],
    ['a current key that is not there', JSON.stringify({ current: 'b', keys: { a: key() } })],
  ])('are not written with a file of %s: the start names variable and file', (_, text) => {
    const file = join(dir, 'bad.json')
    writeFileSync(file, text)
    const load = () => loadPayloadCodec('RELAY__TEMPORAL__PAYLOAD_KEYS', file)
    expect(load).toThrow(ConfigError)
    expect(load).toThrow(/RELAY__TEMPORAL__PAYLOAD_KEYS names .*bad\.json/)
  })
})

describe('the codec endpoint', () => {
  const path = '/v1/engine/codec/decode'
  const codec = new EncryptingCodec({ current: 'k', keys: { k: key() } })
  const keys = { current: 'k', keys: { k: key() } }
  let p: Platform
  const ours = new EncryptingCodec(keys)
  beforeAll(async () => {
    const file = join(dir, 'keys.json')
    writeFileSync(file, JSON.stringify(keys))
    p = await startPlatform({ relay: false, env: { OPERATIONS__TEMPORAL__PAYLOAD_KEYS: file } })
  })
  afterAll(() => p.stop())
  const base64 = (bytes: Uint8Array | null | undefined) => Buffer.from(bytes ?? []).toString('base64')
  const wire = ({ metadata, data }: Payload) => ({
    metadata: Object.fromEntries(Object.entries(metadata ?? {}).map(([name, bytes]) => [name, base64(bytes)])),
    data: base64(data),
  })

  it('shows an engineer what the engine stores, and each use is audited', async () => {
    const payloads = (await ours.encode([plain], at('w1'))).map(wire)
    const { body } = must(await p.as('eng').post(path, { payloads: [...payloads, wire(plain)] }, { key: null }), 200)
    expect(body).toEqual({ payloads: [wire(plain), wire(plain)] })
    const rows = await p.query(`select actor, object, outcome from operations.audit where action = 'engine.decode'`)
    expect(rows).toEqual([{ actor: `user:${p.people.eng.id}`, object: 'workflows:w1', outcome: 'done' }])
  })

  it('refuses others, and payloads that it cannot decode', async () => {
    const foreign = (await codec.encode([plain], at('w1'))).map(wire)
    expect(await p.as('olga').post(path, { payloads: [] })).toMatchObject({
      status: 403,
      body: { category: 'policy_denied', code: 'permission_missing' },
    })
    const broken = { metadata: { encoding: base64(Buffer.from('binary/encrypted')) }, data: 'AAAA' }
    for (const payloads of [foreign, [broken], [{ data: 'no base64!' }], [{ extra: 1 }], 'x'])
      expect(await p.as('eng').post(path, { payloads })).toMatchObject({
        status: 400,
        body: { category: 'validation_error', code: 'schema_violation', violations: expect.anything() },
      })
  })
})
