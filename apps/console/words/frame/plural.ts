import { plural } from './rules.ts'

/** The English form for a number. */
export const count = (n: number, one: string, other: string): string => plural('en', n, { one, other })

export const list = new Intl.ListFormat('en', { type: 'conjunction' })

export const number = new Intl.NumberFormat('en').format
