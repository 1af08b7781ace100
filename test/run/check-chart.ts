import { findHelm, findPrometheus, findPromtool } from './cluster-tools.ts'

/**
 * `npm run check:chart [-- vitest arguments]`: the chart as Helm renders it, the alert rules by promtool, and metrics read
 * by a real Prometheus. It needs pip, or Helm's and Prometheus' programs on PATH.
 */
Object.assign(process.env, {
  CHART_HELM: await findHelm(),
  CHART_PROMTOOL: await findPromtool(),
  CHART_PROMETHEUS: await findPrometheus(),
})
if (process.argv.length < 3) process.argv.push('test/deploy')
await import('./test.ts')
