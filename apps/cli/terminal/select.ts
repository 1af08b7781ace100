import { usageError } from '../errors.ts'

/** Applies a JSONata expression to the data to print. */
export type Selection = (body: unknown) => Promise<unknown>

/** The selection of `--select`; `undefined` without it. Throws a usage error that shows where it is wrong. */
export const selectionOf = async (expression: string | undefined): Promise<Selection | undefined> => {
  if (expression === undefined) return undefined
  // Loaded only on demand: it would slow the start of every other command.
  const { default: jsonata } = await import('jsonata')
  try {
    const compiled = jsonata(expression)
    return (body) => compiled.evaluate(body)
  } catch (error) {
    const { message, position } = error as Error & { position?: number }
    throw usageError(`--select is not a JSONata expression: ${message}${position ? ` (at character ${position})` : ''}`)
  }
}
