export const MASK = '•••'

/** Logs are lines, so each line of a multi-line key is recognized separately. */
const SHORT_LINE = 8
const linesOf = (value: string): string[] =>
  value.includes('\n') ? value.split(/\r?\n/).filter((line) => line.length >= SHORT_LINE) : []

/**
 * Replaces these secret values wherever they appear: verbatim, without a scheme such as "Bearer", line by line, in
 * base64, and as URLs and JSON escape them.
 */
export const maskerOf = (secrets: readonly string[]): ((text: string) => string) => {
  const forms = secrets
    .flatMap((value) => [value, value.replace(/^\S+\s+/, ''), ...linesOf(value)])
    .filter((value) => value.length > 0)
    .flatMap((value) => [
      value,
      Buffer.from(value).toString('base64'),
      Buffer.from(value).toString('base64url'),
      encodeURIComponent(value),
      JSON.stringify(value).slice(1, -1),
    ])
    .sort((a, b) => b.length - a.length)
  return (text) => forms.reduce((masked, form) => masked.replaceAll(form, MASK), text)
}
