/** Masks these values wherever they stand: raw, in base64, and as URLs and JSON spell them. Short ones would mask words. */
export const maskerOf = (values: readonly string[]): ((text: string) => string) => {
  const forms = values
    .filter((value) => value.length >= 4)
    .flatMap((value) => [
      value,
      ...value.split('\n').filter((line) => line.length >= 8),
      Buffer.from(value).toString('base64'),
      Buffer.from(value).toString('base64url'),
      encodeURIComponent(value),
      JSON.stringify(value).slice(1, -1),
    ])
    .sort((a, b) => b.length - a.length)
  return (text) => forms.reduce((left, form) => left.replaceAll(form, '[masked]'), text)
}
