import type { Gate } from '../api/types.ts'
import { coarse, figure, shown, unbroken } from '../kit/format.ts'
import { tDecide } from '../words/decide.ts'
import { inSentence } from '../words/frame/language.ts'
import { t } from '../words/index.ts'
import { obstacles } from '../words/operations/intervene.ts'

/** A part of a line; bad news is colored, the rest of its line is not. */
export type Part = { text: string; bad: boolean; operation_id?: string }
/** One line of a brief in words; `bad` lines come first. `news`: what is bad, without the times and figures that move. */
export type Line = { label: string; parts: readonly Part[]; bad: boolean; news: string }
type Brief = NonNullable<Gate['brief']>
type Metric = NonNullable<NonNullable<Brief['canary']>['metrics']>[number]
type Health = Pick<Brief['now'], 'count' | 'health' | 'worst'>

const words = tDecide.gate.brief
const BAD = new Set(['unhealthy', 'degraded'])
const healthWord = (status: string): string => inSentence(t.health[status] ?? status)
const isPart = (part: string | Part | false): part is string | Part => Boolean(part)
const told = (text: string, bad = true): Part => ({ text, bad })
export const joined = (parts: (string | false)[]): string => parts.filter(isPart).join(' · ')
/** The bad news of a line alone. */
export const badWords = (parts: readonly Part[]): string => joined(parts.map(({ text, bad }) => bad && text))
export const line = (label: string, given: (string | Part | false)[]): Line => {
  const parts = given.filter(isPart).map((part) => (typeof part === 'string' ? { text: part, bad: false } : part))
  return { label, parts, bad: parts.some(({ bad }) => bad), news: badWords(parts) }
}

/** `11 healthy`, or the worst resource by name. */
const healthWords = ({ count, health, worst }: Health): Part => {
  const [first] = worst
  if (!first || !BAD.has(first.health))
    return { text: health.map((each) => words.counted(each.count, healthWord(each.status))).join(', '), bad: false }
  const alike = health.find(({ status }) => status === first.health)?.count ?? 1
  const names = worst.filter((target) => target.health === first.health).map(({ name }) => shown(name))
  return { text: words.bad(alike, count, healthWord(first.health), names), bad: true }
}

/** Conflicts that may stop the run, or say how it may end. A ready plan may never start: any planner could alarm the voters of another. */
const BAD_NEWS = new Set(['failed', 'lease', 'freeze', 'window'])

/** The id of such a conflict is that of an operation. */
const OF_OPERATIONS = new Set(['failed', 'lease', 'dependent', 'waits'])

type Conflict = Gate['context']['conflicts'][number]
/** Where the same change failed, and the innermost cause: an error names what it wraps last, before JSON and more lines. */
const failure = ({ resource_id, title, id, error = '' }: Conflict): string => {
  const causes = error.replace(/:?(\n|\{").*/s, '').split(': ')
  return [resource_id ?? title ?? id, causes.findLast(Boolean)].filter(Boolean).join(', ')
}

/** The conflicts by kind and title, each with its number. */
const conflictParts = ({ conflicts }: Gate['context']): Part[] =>
  [...Map.groupBy(conflicts, ({ kind, id, title }) => `${kind} ${title ?? id}`).values()].flatMap((alike) => {
    const [first] = alike
    if (!first) return []
    const { kind, id, title, message } = first
    const name = kind === 'failed' ? failure(first) : (title ?? id)
    const text = obstacles[kind]?.(shown(name), alike.length) ?? message
    return [{ ...told(text, BAD_NEWS.has(kind)), ...(id && OF_OPERATIONS.has(kind) && { operation_id: id }) }]
  })

/** How the targets that wait are, and who else holds them. */
export const nowLine = ({ brief, context }: Gate): Line => {
  const { hidden = 0, ...now } = brief?.now ?? { count: 0, health: [], worst: [] }
  const health = healthWords(now)
  const silent = brief?.canary?.metrics === null
  return line(words.now, [
    silent && told(words.no_answer),
    now.count + hidden === 0 ? words.no_targets : silent ? told(words.last_known(health.text), health.bad) : health,
    hidden > 0 && words.hidden(hidden),
    ...conflictParts(context),
  ])
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
  const [only] = count === 1 ? named : []
  const name = only ? shown(only.name) : words.canary_many(count)
  const health = only ? healthWord(only.health) : text
  const observed = coarse(now - Date.parse(ended_at))
  const worse = (metrics ?? []).filter(isWorse)
  const figures = briefly ? worse.map(metricWords) : metricsWords(metrics)
  const parts = [
    told(words.canary_ended(name, health, observed), bad),
    ...figures.map((figure) =>
      told(
        figure,
        worse.some((metric) => metricWords(metric) === figure),
      ),
    ),
    retries > 0 && words.retries(retries),
  ]
  const news = joined([text, ...worse.map(({ title }) => title)])
  return { ...line(words.canary, parts), news }
}
