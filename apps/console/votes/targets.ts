import type { Gate } from '../api/types.ts'
import { coarse, figure, shown, unbroken } from '../kit/format.ts'
import { tDecide } from '../words/decide.ts'
import { inSentence } from '../words/frame/language.ts'
import { t } from '../words/index.ts'

/** One line of a brief in words; `bad` lines come first. `news`: what is bad, without the times and figures that move. */
export type Line = { label: string; text: string; bad: boolean; news?: string }
type Brief = NonNullable<Gate['brief']>
type Metric = NonNullable<NonNullable<Brief['canary']>['metrics']>[number]
type Health = Pick<Brief['now'], 'count' | 'health' | 'worst'>

const words = tDecide.gate.brief
const BAD = new Set(['unhealthy', 'degraded'])
const healthWord = (status: string): string => inSentence(t.health[status] ?? status)
export const joined = (parts: (string | false)[]): string =>
  parts.filter((part) => part !== false && part !== '').join(' · ')
export const line = (label: string, parts: (string | false)[], bad = false): Line => ({
  label,
  text: joined(parts),
  bad,
})

/** `11 healthy`, or the worst resource by name. */
const healthWords = ({ count, health, worst }: Health): { text: string; bad: boolean } => {
  const [first] = worst
  if (first === undefined || !BAD.has(first.health))
    return { text: health.map((each) => words.health(each.count, healthWord(each.status))).join(', '), bad: false }
  const alike = health.find(({ status }) => status === first.health)?.count ?? 1
  const names = worst.filter((target) => target.health === first.health).map(({ name }) => shown(name))
  return { text: words.bad(alike, count, healthWord(first.health), names), bad: true }
}

/** How the targets that wait are, and who else holds them. */
export const nowLine = ({ brief, context }: Gate): Line => {
  const { hidden = 0, ...now } = brief?.now ?? { count: 0, health: [], worst: [] }
  const health = healthWords(now)
  const silent = brief?.canary?.metrics === null
  const holders = context.conflicts.map(({ message }) => shown(message ?? ''))
  return line(
    words.now,
    [
      silent && words.no_answer,
      now.count + hidden === 0 ? words.no_targets : silent ? words.last_known(health.text) : health.text,
      hidden > 0 && words.hidden(hidden),
      ...holders,
    ],
    silent || health.bad || holders.length > 0,
  )
}

/** Below this many observations a median says little. */
const ENOUGH = 3
/** A metric reads as bad news if it is worse by more than half than the rest, and than the canary itself before. */
const MUCH = 1.5

const isWorse = ({ better, own, rest, before }: Metric): boolean => {
  const others = [rest.median, before.median].filter((median) => median !== null)
  const value = own.median ?? 0
  return (
    own.samples >= ENOUGH &&
    others.length > 0 &&
    others.every((median) => (better === 'lower' ? value > median * MUCH : value * MUCH < median))
  )
}

const metricWords = ({ title, unit, own, rest, before }: Metric): string => {
  if (own.median === null || own.samples < ENOUGH) return `${shown(title)} ${words.too_early(own.samples)}`
  const beside = [
    rest.median !== null && words.rest(figure(rest.median)),
    before.median !== null && words.before(figure(before.median)),
  ].filter((part) => part !== false)
  return words.metric(shown(title), unbroken(`${figure(own.median)} ${shown(unit)}`), beside)
}

/** How the metrics of a canary compare, in words. */
const metricsWords = (metrics: Metric[] | null | undefined): string[] => {
  if (!metrics) return []
  if (metrics.length === 0) return [words.no_metrics]
  const most = Math.max(...metrics.map(({ own }) => own.samples))
  return most < ENOUGH ? [words.too_early(most)] : metrics.map(metricWords)
}

/** How the first changed targets do beside the rest; `undefined` if none. `briefly`: names a metric only if bad. */
export const canaryLine = ({ brief }: Gate, now: number, briefly = false): Line | undefined => {
  if (!brief?.canary) return undefined
  const { count, named, ended_at, retries, metrics } = brief.canary
  const { text, bad } = healthWords(brief.canary)
  const [only] = named
  const name = count === 1 && only ? shown(only.name) : words.canary_many(count)
  const health = count === 1 && only ? healthWord(only.health) : text
  const ago = t.time.ago(coarse(now - Date.parse(ended_at)))
  const worse = (metrics ?? []).filter(isWorse)
  const figures = briefly ? worse.map(metricWords) : metricsWords(metrics)
  const parts = [words.canary_ended(name, health, ago), ...figures, retries > 0 && words.retries(retries)]
  const news = joined([text, ...worse.map(({ title }) => title)])
  return { ...line(words.canary, parts, bad || worse.length > 0), news }
}
