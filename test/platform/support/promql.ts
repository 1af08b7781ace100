import { parser } from '@prometheus-io/lezer-promql'

type Node = ReturnType<typeof parser.parse>['topNode']
export type Selector = { name: string; matchers: { label: string; op: string; value: string }[] }

/** The series that an expression in PromQL asks for, and the labels that it groups by. Throws if it does not parse. */
export const readPromql = (expr: string): { selectors: Selector[]; grouped: string[] } => {
  const text = (node: Node | null) => (node ? expr.slice(node.from, node.to) : '')
  const selectors: Selector[] = []
  const grouped: string[] = []
  parser.parse(expr).iterate({
    enter: ({ node, type }) => {
      if (type.isError) throw new Error(`no PromQL at ${node.from}: ${expr}`)
      if (type.name === 'GroupingLabels') grouped.push(...node.getChildren('LabelName').map(text))
      if (type.name !== 'VectorSelector') return
      const matchers = (node.getChild('LabelMatchers')?.getChildren('UnquotedLabelMatcher') ?? []).map((one) => ({
        label: text(one.getChild('LabelName')),
        op: text(one.getChild('MatchOp')),
        value: text(one.getChild('StringLiteral')).slice(1, -1),
      }))
      selectors.push({ name: text(node.getChild('Identifier')), matchers })
    },
  })
  return { selectors, grouped }
}

/** The parts of an expression that these series cannot answer. A series counts for every value of its labels. */
export const unanswered = (
  expr: string,
  series: readonly { name: string; labels: Record<string, string> }[],
): string[] => {
  const { selectors, grouped } = readPromql(expr)
  const found = selectors.map(({ name, matchers }) => ({
    name,
    matching: series.filter(
      (one) =>
        one.name === name &&
        matchers.every(({ label, op, value }) => (op === '=' ? one.labels[label] === value : label in one.labels)),
    ),
  }))
  const known = found.flatMap(({ matching }) => matching.flatMap(({ labels }) => Object.keys(labels)))
  return [
    ...found.filter(({ matching }) => matching.length === 0).map(({ name }) => `${name}: no such series in ${expr}`),
    ...grouped.filter((label) => !known.includes(label)).map((label) => `${label}: no such label in ${expr}`),
  ]
}
