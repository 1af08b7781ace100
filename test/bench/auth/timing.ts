import { median } from '../lib/graph.ts'
import { printFigure } from '../lib/print.ts'
import { mannWhitney } from '../lib/ranks.ts'
import { type Bench, login, type Row } from './clients.ts'

const WRONG = 'Wrong-Horse-7-Battery'

/** Whether the time of a refused login reveals who exists: a ghost, a disabled user, and a wrong password, in turn. */
export const benchTiming = async (bench: Bench, samples: number): Promise<Row[]> => {
  console.error(`${samples} refused logins of each of three kinds`)
  const { ada } = await bench.stack.people()
  const me = await ada.get<{ id: string }>('/v1/users/me')
  const { items } = await ada.get<{ items: { id: string; username: string }[] }>('/v1/admin/users')
  const [disabled, active] = items.filter(({ id }) => id !== me.id)
  if (!disabled || !active) throw new Error('the demo has too few people')
  await ada.post(`/v1/admin/users/${disabled.id}/disable`, { reason: 'bench' })
  const names = { unknown: 'nobody-of-that-name', disabled: disabled.username, wrong: active.username }
  const kinds = Object.keys(names) as (keyof typeof names)[]
  const times = Object.fromEntries(kinds.map((kind) => [kind, [] as number[]])) as Record<
    (typeof kinds)[number],
    number[]
  >
  for (let i = 0; i < samples; i++) {
    for (let turn = 0; turn < kinds.length; turn++) {
      const kind = kinds[(i + turn) % kinds.length] as (typeof kinds)[number]
      const begun = performance.now()
      const { status, text } = await login(bench, names[kind], WRONG)
      times[kind].push(performance.now() - begun)
      if (status !== 401) throw new Error(`a wrong login was answered ${status}: ${text}`)
    }
  }
  const medians = Object.fromEntries(kinds.map((kind) => [kind, median(times[kind])]))
  const all = Object.values(medians)
  const apart = Math.max(...all) / Math.min(...all) - 1
  const p = Math.min(
    mannWhitney(times.unknown, times.disabled),
    mannWhitney(times.unknown, times.wrong),
    mannWhitney(times.disabled, times.wrong),
  )
  printFigure({ figure: 'login_timing', samples, medians_ms: medians, apart, p })
  const shown = kinds.map((kind) => `${kind} ${medians[kind]?.toFixed(1)}`).join(', ')
  return [
    [
      'medians of refused logins apart by',
      `${(100 * apart).toFixed(2)} %`,
      `${shown} ms`,
      `aim <= 3 %; p ${p.toFixed(3)} (aim > 0.01)`,
    ],
  ]
}
