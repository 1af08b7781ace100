import type { MetricName, Telemetry } from '../telemetry.ts'

/** One value of a gauge: the values of its labels in order, then its number. */
export type Measured = { name: string; labels: string[]; value: number }

/** The name of a gauge, its help text, and its labels. */
export type MeasuredGauge = readonly [name: MetricName, help: string, ...labels: string[]]

const FRESH_MS = 1000

/**
 * Gauges that are read from rows on demand: one read for all of them, at most one per second. A value that is not read
 * is 0 if the gauge has no label. If the read fails all are absent, which differs from 0.
 */
export const measure = (telemetry: Telemetry, gauges: readonly MeasuredGauge[], read: () => Promise<Measured[]>) => {
  let at = Number.NEGATIVE_INFINITY
  let last: Promise<Measured[] | undefined> = Promise.resolve(undefined)
  const fresh = () => {
    if (performance.now() - at < FRESH_MS) return last
    at = performance.now()
    last = read().catch((err: unknown) => {
      telemetry.log.debug({ err }, 'the metrics could not be read')
      return undefined
    })
    return last
  }
  for (const [name, help, ...labels] of gauges) {
    const gauge = telemetry.gauge(name, help, labels)
    const collect = async () => {
      const values = await fresh()
      gauge.reset()
      if (values === undefined && labels.length === 0) gauge.set(Number.NaN)
      for (const one of values ?? [])
        if (one.name === name)
          gauge.set(Object.fromEntries(labels.map((label, i) => [label, one.labels[i] ?? ''])), one.value)
    }
    Object.assign(gauge, { collect })
  }
}
