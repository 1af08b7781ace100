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
  ...[
    'e2e/desk',
    'workflows/crash',
    'cli/cli',
    'e2e/account',
    'agent/cancels',
    'platform/secured',
    'agent/ansible',
    'e2e/crash',
  ],
  ...[
    'agent/conformance',
    'e2e/story',
    'operations/agents.repeats',
    'operations/command',
    'platform/start',
    'operations/flow',
    'platform/busy',
  ],
  ...['agent/tofu', 'platform/ops', 'cli/package', 'e2e/path', 'agent/agent', 'model/model', 'platform/restore'],
  ...['agent/ssh', 'chaos/chaos', 'operations/gates.signature', 'contract/bad-input', 'agent/kills', 'relay/broker'],
  ...['platform/servers.ports', 'cli/program', 'operations/gates.voters', 'contract/examples', 'operations/agents'],
  ...['platform/tests.interrupted', 'operations/bulk', 'workflows/outage', 'e2e/phone'],
  ...['platform/deploy.containers', 'agent/git', 'operations/internal', 'platform/setup', 'catalog/resources.past'],
  ...['operations/notifications', 'agent/asking', 'catalog/imports.jobs', 'operations/gates.bulk'],
]

const CONSOLE = 'test/console/**/*.test.ts'

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
    // They need programs and slowly built servers: `npm run test:kubernetes`, `test:collector`, `check:chart`.
    exclude: [
      ...(process.env.KUBE_APISERVER ? [] : ['test/kubernetes/**']),
      ...(process.env.OTEL_COLLECTOR ? [] : ['test/collector/**']),
      ...(process.env.CHART_PROMTOOL ? [] : ['test/deploy/**']),
      // It builds a registry with Go, which no other test needs.
      ...(which('go') ? [] : ['test/operations/packs.registry.test.ts']),
    ],
    // Node itself loads our files, from its cache of compiled modules; it cannot read the console's TSX.
    projects: [
      { extends: true, test: { name: 'console', include: [CONSOLE] } },
      {
        extends: true,
        test: {
          name: 'apps',
          include: ['test/**/*.test.ts'],
          exclude: [CONSOLE],
          experimental: { viteModuleRunner: false, nodeLoader: false },
        },
      },
    ],
    pool: 'forks',
    maxWorkers: 4,
    sequence: { sequencer: LongestFirst },
    testTimeout: 90_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 20_000 } },
    reporters: ['default'],
    env: {
      SIGNALBOX_LOG_LEVEL: process.env.SIGNALBOX_LOG_LEVEL ?? 'silent',
      // A test process runs several apps and is always busy, which is no overload of any of them.
      SIGNALBOX__PRESSURE__UTILISATION: '1',
      SIGNALBOX__PRESSURE__DELAY_MS: '60000',
    },
  },
})
