import { AppError } from '../../shared/errors.ts'

/** Ids that the server generated for a request, with their names in that request. */
export type Names = ReadonlyMap<string, string>

const ID = /\bres_[a-z2-7]{26}\b/g

/** The text with generated ids replaced by their names in the request. */
export const asCalled = (text: string, names: Names, spell = (name: string) => name): string =>
  names.size === 0 ? text : text.replace(ID, (id) => (names.has(id) ? spell(names.get(id) as string) : id))

/** A refusal in the request's own names, because an id generated for a refused resource leads nowhere. */
export const refusedAs = (error: AppError, names: Names): AppError => {
  const { violations, extra, ...options } = error.options
  const { existing_resource_id: existing, ...others } = extra ?? {}
  const called = typeof existing === 'string' ? names.get(existing) : undefined
  return new AppError(error.category, error.code, asCalled(error.message, names), {
    ...options,
    status: error.status,
    ...(extra && { extra: called === undefined ? extra : { ...others, existing_external_id: called } }),
    ...(violations && { violations: violations.map((one) => ({ ...one, message: asCalled(one.message, names) })) }),
  })
}
