import Type, { type TNumberOptions, type TObjectOptions, type TProperties, type TStringOptions } from 'typebox'

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

/**
 * Characters that texts must not hold: controls, line ends, invisible ones such as U+200B or direction changes, and
 * those that are no characters, such as U+FFFE.
 */
export const HIDDEN = '\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}\\p{DI}\\p{NChar}'
/** At least one character that shows. */
export const VISIBLE = `[^\\s${HIDDEN}]`
const START = `^[\\p{Zs}]*${VISIBLE}`
/** A name that tells things apart: one line that shows, and two that look alike are alike. Takes linear time. */
export const NAME = `${START}[^${HIDDEN}]*$`
/** One line that is only read: it may contain joiners of letters and emoji. */
export const LINE = `${START}(?:[^${HIDDEN}]|[\\u200c\\u200d\\ufe0f])*$`

/** Returns a text schema with an example: every text of a reply has one (example.ts builds whole replies from them). */
export const text = (example: string, options: TStringOptions = {}) => Type.String({ ...options, examples: [example] })
