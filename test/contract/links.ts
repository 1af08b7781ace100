import type { Answer } from './requests.ts'

const LINK = /^\/(api\/)?v1\//

/** All links in an answer to our own addresses: in Location, in Link, and anywhere in the body. */
export const linksIn = ({ headers, body }: Pick<Answer, 'headers' | 'body'>): string[] => {
  const { location, link } = headers
  const found = [location, link].flat().flatMap((text) => text?.match(/^[^<]+$|(?<=<)[^>]+(?=>)/g) ?? [])
  const visit = (value: unknown): void => {
    if (typeof value === 'string' && LINK.test(value)) found.push(value)
    if (typeof value === 'object' && value !== null) Object.values(value).forEach(visit)
  }
  visit(body)
  return [...new Set(found)]
}
