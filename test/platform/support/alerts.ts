import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { ROOT } from '../../../apps/platform/base/paths.ts'

const FOLDER = 'apps/platform/deploy/observe'

export type Rule = {
  expr: string
  record?: string
  alert?: string
  labels?: Record<string, string>
  annotations?: { summary: string; runbook_url: string }
}
type Dashboard = { panels: { title: string; targets?: { expr: string; legendFormat: string }[] }[] }

const textOf = (name: string) => readFileSync(join(ROOT, FOLDER, name), 'utf8')

export const RULES = (parse(textOf('rules.yaml')) as { groups: { rules: Rule[] }[] }).groups.flatMap(
  ({ rules }) => rules,
)
export const ALERTS = RULES.filter((rule) => rule.alert !== undefined)
export const PANELS = (JSON.parse(textOf('dashboard.json')) as Dashboard).panels
/** The sections of the runbooks by their name. */
export const RUNBOOKS = new Map(
  textOf('runbooks.md')
    .split(/^## /m)
    .slice(1)
    .map((section) => [section.split('\n')[0] ?? '', section]),
)
/** The address of a section, from the root of the repository. */
export const addressOf = (alert: string) => `${FOLDER}/runbooks.md#${alert.toLowerCase()}`

/** Series that Prometheus or our own recording rules create, and those of a platform with TLS (`secured.test.ts`). */
export const MADE = [
  { name: 'up', labels: { job: 'signalbox', instance: 'any' } },
  { name: 'signalbox_certificate_expiry_seconds', labels: { app: 'any', name: 'any' } },
  ...RULES.filter((rule) => rule.record !== undefined).map(({ record = '', labels }) => ({
    name: record,
    labels: { class: 'any', ...labels },
  })),
]
