import { findHelm, findPromtool } from './cluster-tools.ts'

/**
 * `npm run check:chart [-- vitest arguments]`: the chart as Helm renders it, and the alert rules by promtool. It needs pip,
 * or Helm's and Prometheus' programs on PATH.
 */
Object.assign(process.env, { CHART_HELM: await findHelm(), CHART_PROMTOOL: await findPromtool() })
if (process.argv.length < 3) process.argv.push('test/deploy')
await import('./test.ts')
