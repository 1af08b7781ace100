const rules = new Map<string, Intl.PluralRules>()

/** The form of a word for a number, by the rules of the language; the number replaces `{n}`. */
export const plural = (language: string, n: number, forms: { one: string; other: string }): string => {
  let rule = rules.get(language)
  if (rule === undefined) {
    rule = new Intl.PluralRules(language)
    rules.set(language, rule)
  }
  const form = rule.select(n) === 'one' ? forms.one : forms.other
  return form.replaceAll('{n}', new Intl.NumberFormat(language).format(n))
}
