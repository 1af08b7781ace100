import Type, { type TNumberOptions, type TObjectOptions, type TProperties, type TStringOptions } from 'typebox'
import { HIDDEN } from './hidden.ts'

/** An object schema with only these properties: a misspelled name is refused instead of silently defaulting. */
export const Closed = <Properties extends TProperties>(properties: Properties, options: TObjectOptions = {}) =>
  Type.Object(properties, { additionalProperties: false, ...options })

/** An array of objects with these properties. */
export const ArrayOf = <Properties extends TProperties>(properties: Properties) => Type.Array(Type.Object(properties))

/** The same schemas as members that may be left out. */
export const OptionalClosed = <Properties extends TProperties>(properties: Properties) =>
  Type.Optional(Closed(properties))
export const OptionalText = (options: TStringOptions) => Type.Optional(Type.String(options))
export const OptionalInteger = (options: TNumberOptions) => Type.Optional(Type.Integer(options))

/** At least one character that shows. */
export const VISIBLE = `[^\\s${HIDDEN}]`
const START = `^[\\p{Zs}]*${VISIBLE}`
/** A name that tells things apart: one line that shows, and two that look alike are alike. Takes linear time. */
export const NAME = `${START}[^${HIDDEN}]*$`
/** One line that is only read: it may contain joiners of letters and emoji. */
export const LINE = `${START}(?:[^${HIDDEN}]|[\\u200c\\u200d\\ufe0f])*$`

/** Letters and digits of any script and ._@+-, as far as tools that know no properties of Unicode can tell. */
export const USERNAME = '^[^\\s!-*,/:-?\\[-^`{-~]+$'
export const MACHINE_NAME = '^[a-z][a-z0-9-]{0,49}$'
export const GROUP_KEY = '^[a-z][a-z0-9-]{1,62}$'
export const NETWORK = '^[0-9a-fA-F.:]{2,39}/[0-9]{1,3}$'
const SEEN = 'must be one visible line, without control or invisible characters'
/** What a value must be, in words, for the patterns that people meet. */
export const SENTENCES: Readonly<Record<string, string>> = {
  [NAME]: SEEN,
  [LINE]: SEEN,
  [VISIBLE]: 'must have a character that shows',
  [USERNAME]: 'must be letters, digits or ._-@+, without spaces',
  [MACHINE_NAME]: 'must be 1 to 50 small letters, digits or hyphens, with a letter first',
  [GROUP_KEY]: 'must be 2 to 63 small letters, digits or hyphens, with a letter first',
  [NETWORK]: 'must be a network such as 203.0.113.0/24 or 2001:db8::/32',
}

/** Returns a text schema with an example: every text of a reply has one (example.ts builds whole replies from them). */
export const text = (example: string, options: TStringOptions = {}) => Type.String({ ...options, examples: [example] })
