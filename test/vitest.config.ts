import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  test: {
    include: ['test/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: 3,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    reporters: ['default'],
    env: {
      SIGNALBOX_LOG_LEVEL: process.env.SIGNALBOX_LOG_LEVEL ?? 'silent',
      // A test process runs several apps and is busy all the time: that is no overload of any of them.
      SIGNALBOX__PRESSURE__UTILISATION: '1',
      SIGNALBOX__PRESSURE__DELAY_MS: '60000',
    },
  },
})
