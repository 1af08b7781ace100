import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { elapsed } from '../../apps/platform/base/screen.ts'
import { cachePath } from '../../apps/platform/servers/cache.ts'
import { run, type Source, which } from '../../apps/platform/servers/sources.ts'
import { findTool, inScratch, moveIn } from './cluster-tools.ts'

/**
 * `npm run test:collector`: spans and metrics through a real OpenTelemetry Collector that is set up by deploy/observe. It
 * needs Go; the build takes some minutes, once.
 */
const VERSION = '0.161.0'
const CORE = 'go.opentelemetry.io/collector'
const CONTRIB = 'github.com/open-telemetry/opentelemetry-collector-contrib'
const BUILD_MS = 3_600_000
const PARTS = {
  receivers: [`${CORE}/receiver/otlpreceiver`],
  exporters: [`${CORE}/exporter/otlphttpexporter`],
  processors: [
    `${CORE}/processor/memorylimiterprocessor`,
    `${CORE}/processor/batchprocessor`,
    `${CONTRIB}/processor/tailsamplingprocessor`,
  ],
}

const built = (target: string): Source => ({
  what: `go run ${CORE}/cmd/builder@v${VERSION}`,
  run: (say) =>
    inScratch(async (scratch) => {
      const go = which('go') ?? '/usr/local/go/bin/go'
      const config = join(scratch, 'builder.yaml')
      const dist = { name: 'otelcol', output_path: join(scratch, 'dist'), module: 'signalbox/otelcol', go }
      const parts = Object.entries(PARTS).map(([kind, names]) => [
        kind,
        names.map((n) => ({ gomod: `${n} v${VERSION}` })),
      ])
      writeFileSync(config, JSON.stringify({ dist, ...Object.fromEntries(parts) })) // JSON is YAML
      say(`building the OpenTelemetry Collector ${VERSION} with Go (3 to 15 minutes on 2 cores, once)`)
      const started = performance.now()
      const env = { CGO_ENABLED: '0', GOTOOLCHAIN: 'auto' }
      const args = ['run', `${CORE}/cmd/builder@v${VERSION}`, '--config', config]
      await run(go, args, { timeout_ms: BUILD_MS, env, cwd: scratch, lines: 5 })
      say(`built in ${elapsed(performance.now() - started)}`)
      return moveIn(join(scratch, 'dist/otelcol'), target)
    }),
})

const target = cachePath('otelcol', VERSION)
process.env.OTEL_COLLECTOR = await findTool('otelcol', target, [built(target)])
if (process.argv.length < 3) process.argv.push('test/collector')
await import('./test.ts')
