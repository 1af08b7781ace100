import { plural } from '../../words/frame/rules.ts'

/** The German form for a number. */
export const count = (n: number, one: string, other: string): string => plural('de', n, { one, other })

export const list = new Intl.ListFormat('de', { type: 'conjunction' })

export const number = new Intl.NumberFormat('de').format
