import Type, { type TObjectOptions, type TProperties } from 'typebox'

/** An object with these properties and no others: any other one is refused, so that a misspelled name is no silent default. */
export const Closed = <Properties extends TProperties>(properties: Properties, options: TObjectOptions = {}) =>
  Type.Object(properties, { additionalProperties: false, ...options })
