import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { ROOT } from '../../apps/platform/base/paths.ts'

/** Prometheus' own verdict on the alert rules. */
const promtool = (...args: string[]): string =>
  execFileSync(process.env.CHART_PROMTOOL ?? '', args, {
    ...{ cwd: join(ROOT, 'apps/platform/deploy/observe'), encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] },
  })

it('the rules are valid', () => {
  expect(promtool('check', 'rules', '--lint-fatal', 'rules.yaml')).toContain('SUCCESS')
})

it('alerts fire, name the people concerned and stop as their tests say', () => {
  expect(promtool('test', 'rules', 'rules.test.yaml')).toContain('SUCCESS')
})
