import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { which } from '../apps/platform/servers/sources.ts'

/**
 * The files that take longest come first: started last, each would run alone at the end while cores are idle. Those
 * that start their own platform are spaced out, so that three of them never start at once. A fresh checkout knows no
 * durations, and the size of a file says little about them.
 */
const LONGEST = [
  'e2e/desk',
  'catalog/results',
  'workflows/crash',
  'platform/start',
  'operations/command',
  'cli/cli',
  'operations/flow',
  'e2e/story',
  'catalog/relationships',
  'chaos/chaos',
  'model/model',
  'operations/model',
  'contract/bad-input',
  'platform/ops',
  'operations/operations.reads',
  'e2e/crash',
  'contract/examples',
]

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rankOf = ({ moduleId }: TestSpecification) => {
      const rank = LONGEST.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`))
      return rank < 0 ? LONGEST.length : rank
    }
    return (await super.sort(files)).sort((a, b) => rankOf(a) - rankOf(b))
  }
}

export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  test: {
    include: ['test/**/*.test.ts'],
    // They need programs and slowly built servers: `npm run test:kubernetes`, `test:collector`, `check:chart`.
    exclude: [
      ...(process.env.KUBE_APISERVER ? [] : ['test/kubernetes/**']),
      ...(process.env.OTEL_COLLECTOR ? [] : ['test/collector/**']),
      ...(process.env.CHART_PROMTOOL ? [] : ['test/deploy/**']),
      // It builds a registry with Go, which no other test needs.
      ...(which('go') ? [] : ['test/operations/packs.registry.test.ts']),
    ],
    pool: 'forks',
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    testTimeout: 30_000,
    hookTimeout: 60_000,
    reporters: ['default'],
    env: {
      SIGNALBOX_LOG_LEVEL: process.env.SIGNALBOX_LOG_LEVEL ?? 'silent',
      // A test process runs several apps and is always busy, which is no overload of any of them.
      SIGNALBOX__PRESSURE__UTILISATION: '1',
      SIGNALBOX__PRESSURE__DELAY_MS: '60000',
    },
  },
})
