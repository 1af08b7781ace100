import Type, { type TNumberOptions, type TObjectOptions, type TProperties, type TStringOptions } from 'typebox'

/**
 * Returns an object schema with these properties and no others, so that a misspelled name is refused instead of
 * silently defaulting.
 */
export const Closed = <Properties extends TProperties>(properties: Properties, options: TObjectOptions = {}) =>
  Type.Object(properties, { additionalProperties: false, ...options })

/** An array of objects with these properties. */
export const ArrayOf = <Properties extends TProperties>(properties: Properties) => Type.Array(Type.Object(properties))

/** The same schemas as members that may be left out. */
export const OptionalClosed = <Properties extends TProperties>(properties: Properties) =>
  Type.Optional(Closed(properties))
export const OptionalText = (options: TStringOptions) => Type.Optional(Type.String(options))
export const OptionalInteger = (options: TNumberOptions) => Type.Optional(Type.Integer(options))
