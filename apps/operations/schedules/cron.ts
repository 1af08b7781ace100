/** The forms of a cron expression that the API takes; the document of `when.cron` lists them. */
type Field = { name: string; least: number; most: number; names?: readonly string[]; day?: true }

const MONTHS = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC']
const DAYS = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT']
const FIELDS: readonly Field[] = [
  { name: 'minute', least: 0, most: 59 },
  { name: 'hour', least: 0, most: 23 },
  { name: 'day of month', least: 1, most: 31, day: true },
  { name: 'month', least: 1, most: 12, names: MONTHS },
  { name: 'day of week', least: 0, most: 7, names: DAYS, day: true },
]
const FIVE = 'must have five fields: minute, hour, day of month, month, day of week'

/** Says how an expression must differ; `undefined` if it is well formed. */
export const faultInCron = (cron: string): string | undefined => {
  const parts = cron.trim().split(/\s+/)
  if (parts.length !== FIELDS.length) return FIVE
  for (const [i, field] of FIELDS.entries())
    for (const item of (parts[i] ?? '').split(',')) {
      const fault = faultInItem(field, item)
      if (fault !== undefined) return fault
    }
  return undefined
}

const faultInItem = (field: Field, item: string): string | undefined => {
  const { name, least, most, names = [], day } = field
  if (item === '?' && day) return undefined
  const [, whole, from = '', to, step] = /^(?:(\*)|([0-9A-Za-z]+)(?:-([0-9A-Za-z]+))?)(?:\/(\d+))?$/.exec(item) ?? []
  const range = `numbers from ${least} to ${most}${names.length > 0 ? `, names such as ${names[1]}` : ''}`
  if (whole === undefined && from === '')
    return `has "${item}" as ${name}; write *, a list of ${range}, ranges, and steps such as */5`
  if (step !== undefined && whole === undefined && to === undefined)
    return `has "${item}" as ${name}; a step follows * or a range, such as ${from}-${most}/${step}`
  if (step !== undefined && (Number(step) < 1 || Number(step) > most))
    return `has the step ${step} as ${name}; it must be from 1 to ${most}`
  if (whole !== undefined) return undefined
  const [first, last] = [from, to ?? from].map((text) => numberOf(field, text))
  if (first === undefined || last === undefined) return `has "${item}" as ${name}; it takes ${range}`
  // Sunday ends a week as well as it begins one.
  const end = last === 0 && most === 7 && to !== undefined ? 7 : last
  return first > end ? `has the range ${item} as ${name}, which must rise; write two ranges` : undefined
}

const numberOf = ({ least, most, names = [] }: Field, text: string): number | undefined => {
  const named = names.indexOf(text.toUpperCase())
  if (named >= 0) return named + least
  const number = /^\d{1,2}$/.test(text) ? Number(text) : undefined
  return number !== undefined && number >= least && number <= most ? number : undefined
}
