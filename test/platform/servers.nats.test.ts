import { statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { type JetStreamManager, StorageType } from 'nats'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { connectNats } from '../../apps/shared/events/events.ts'
import { serverUrl } from '../support/database.ts'

const NAME = `beyond_the_disk_${process.pid}`
let nc: Awaited<ReturnType<typeof connectNats>>
let jsm: JetStreamManager
beforeAll(async () => {
  nc = await connectNats(serverUrl('NATS_URL'), 'test')
  jsm = await nc.jetstreamManager()
})
afterAll(async () => {
  await jsm.streams.delete(NAME).catch(() => undefined)
  await nc.close()
})

it('reserves more for its streams than the disk has free, so that the platform starts on a small disk', async () => {
  const { bavail, bsize } = statfsSync(tmpdir())
  const { config } = await jsm.streams.add({
    name: NAME,
    subjects: [`${NAME}.>`],
    storage: StorageType.File,
    max_bytes: Math.min(bavail * bsize, 512 * 1024 ** 3),
  })
  expect(config.name).toBe(NAME)
})
