import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse, parseAllDocuments } from 'yaml'
import { ROOT } from '../../apps/platform/base/paths.ts'
import { PRODUCTION_APPS, writeProduction } from '../../apps/platform/deploy/production.ts'
import { MOUNTED } from '../../apps/platform/deploy/secrets.ts'

export const CHART = join(ROOT, 'apps/platform/deploy/chart')
export type Facts = {
  http?: number
  internal: number
  calls?: string[]
  uses: string[]
  volume?: string
  public?: boolean
}
export const FACTS = parse(readFileSync(join(CHART, 'apps.yaml'), 'utf8')) as Record<string, Facts>
export const NAMES = PRODUCTION_APPS.map(({ name }) => name)

// biome-ignore lint/suspicious/noExplicitAny: objects of Kubernetes, which are not ours
export type Any = any
export const objectsIn = (text: string): Any[] =>
  parseAllDocuments(text).flatMap((one) => (one.contents === null ? [] : [one.toJS()]))

/** The Secrets that the setup writes for the chart, by their names. */
export const writeSecrets = async (): Promise<Map<string, Record<string, string>>> => {
  const out = mkdtempSync(join(tmpdir(), 'signalbox-chart-'))
  try {
    await writeProduction({
      ...{ out, at: MOUNTED, data: '/var/lib/signalbox', hosts: 'signalbox-{app}', listen: '0.0.0.0' },
      ...{ origin: 'https://signalbox.example.com', postgres: 'postgres://postgres:5432?sslmode=verify-full' },
      ...{ redis: 'rediss://redis:6379', nats: 'tls://nats:4222', temporal: 'tls://temporal:7233' },
      ...{ namespace: 'signalbox', temporal_api_key: 'open-sesame', authority: undefined, kubernetes: true },
    })
    const secrets = objectsIn(readFileSync(join(out, 'secrets.yaml'), 'utf8'))
    return new Map(secrets.map(({ metadata, stringData }) => [metadata.name, stringData]))
  } finally {
    rmSync(out, { recursive: true, force: true })
  }
}
