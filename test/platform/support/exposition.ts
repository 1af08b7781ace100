const NAME = /[a-zA-Z_:][a-zA-Z0-9_:]*/.source
const LABEL = /[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"/.source
const SAMPLE = new RegExp(
  `^(${NAME})(?:\\{(${LABEL}(?:,${LABEL})*)?\\})? ([+-]?(?:Inf|Nan|NaN|\\d[\\d.]*(?:e[+-]?\\d+)?))$`,
)
const META = new RegExp(`^# (HELP|TYPE) (${NAME}) (.+)$`)
const OF_TYPE: Record<string, RegExp> = {
  counter: /^$/,
  gauge: /^$/,
  histogram: /^_(bucket|sum|count)$/,
  summary: /^(_sum|_count)?$/,
}

/** Names of the families of an exposition in the Prometheus text format. Throws at the first line that breaks it. */
export const familiesOf = (text: string): Set<string> => {
  const types = new Map<string, string>()
  const series = new Set<string>()
  let family = ''
  for (const line of text.split('\n').filter((one) => one !== '')) {
    const [, word, named = '', rest = ''] = META.exec(line) ?? []
    if (word === 'TYPE') {
      if (types.has(named) || !OF_TYPE[rest]) throw new Error(`bad or second type: ${line}`)
      types.set(named, rest)
      family = named
    } else if (word === undefined) {
      const [, name = '', labels = ''] = SAMPLE.exec(line) ?? []
      const suffixes = OF_TYPE[types.get(family) ?? '']
      if (!name.startsWith(family) || !suffixes?.test(name.slice(family.length))) throw new Error(`no sample: ${line}`)
      if (series.has(`${name}{${labels}}`)) throw new Error(`a second time: ${line}`)
      series.add(`${name}{${labels}}`)
    }
  }
  return new Set(types.keys())
}

/** Each series of an exposition with its labels; a family without series counts as one, with only the app's label. */
export const seriesOf = (text: string): { name: string; labels: Record<string, string> }[] => {
  const series = text.split('\n').flatMap((line) => {
    const [, name, labels = ''] = SAMPLE.exec(line) ?? []
    const pairs = [...labels.matchAll(new RegExp(LABEL, 'g'))].map(([pair]) => [
      pair.slice(0, pair.indexOf('=')),
      pair.slice(pair.indexOf('=') + 2, -1),
    ])
    return name ? [{ name, labels: Object.fromEntries(pairs) as Record<string, string> }] : []
  })
  const known = new Set(series.map(({ name }) => name))
  const empty = [...familiesOf(text)].filter((name) => !known.has(name))
  return [...series, ...empty.map((name) => ({ name, labels: { app: series[0]?.labels.app ?? '' } }))]
}
