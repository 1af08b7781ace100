import { generateKeyPairSync, sign, verify } from 'node:crypto'
import argon2 from 'argon2'

/**
 * The lower bound for refresh and login, requested by message: `rs256` makes two signatures and one verification as
 * often as it can, `argon2id` hashes ten at a time. Both answer `{count, seconds, cpu_ms}`.
 */
type Task = { kind: 'rs256' | 'argon2id'; ms: number }

const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const input = Buffer.from('x'.repeat(500))

const signatures = async (end: number): Promise<number> => {
  let count = 0
  while (performance.now() < end) {
    const signature = sign('sha256', input, privateKey)
    sign('sha256', input, privateKey)
    verify('sha256', input, publicKey, signature)
    count += 1
  }
  return count
}

const OPTIONS = { type: argon2.argon2id, memoryCost: 65_536, timeCost: 3, parallelism: 4, version: 0x13 } as const
const stored = await argon2.hash('Correct-Horse-7-Battery', OPTIONS)

const hashes = async (end: number): Promise<number> => {
  let count = 0
  await Promise.all(
    Array.from({ length: 10 }, async () => {
      while (performance.now() < end) {
        await argon2.verify(stored, 'Correct-Horse-7-Battery')
        count += 1
      }
    }),
  )
  return count
}

process.on('message', async ({ kind, ms }: Task) => {
  const started = performance.now()
  const before = process.cpuUsage()
  const count = await (kind === 'rs256' ? signatures : hashes)(started + ms)
  const { user, system } = process.cpuUsage(before)
  process.send?.({ count, seconds: (performance.now() - started) / 1000, cpu_ms: (user + system) / 1000 })
})
process.send?.('ready')
process.on('disconnect', () => process.exit())
