import { usageError } from '../errors.ts'

/** Applies a JSONata expression to what would be printed. */
export type Selection = (body: unknown) => Promise<unknown>

/** The selection of `--select`; undefined without one. Throws a usage error that says where the expression is wrong. */
export const selectionOf = async (expression: string | undefined): Promise<Selection | undefined> => {
  if (expression === undefined) return undefined
  // Loaded for those who ask for it alone: it would cost every other command its time to start.
  const { default: jsonata } = await import('jsonata')
  try {
    const compiled = jsonata(expression)
    return (body) => compiled.evaluate(body)
  } catch (error) {
    const { message, position } = error as Error & { position?: number }
    throw usageError(`--select is no JSONata expression: ${message}${position ? ` (at character ${position})` : ''}`)
  }
}
