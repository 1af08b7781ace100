import type { Answer } from './requests.ts'

const LINK = /^\/(api\/)?v1\//

/** Everything in an answer that leads to another address of ours: in Location, in Link, and at any place of the body. */
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
