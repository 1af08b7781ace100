import Type, { type TObjectOptions, type TProperties } from 'typebox'

/**
 * Returns an object schema with these properties and no others, so that a misspelled name is refused instead of
 * silently defaulting.
 */
export const Closed = <Properties extends TProperties>(properties: Properties, options: TObjectOptions = {}) =>
  Type.Object(properties, { additionalProperties: false, ...options })
