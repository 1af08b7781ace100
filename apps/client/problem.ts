import { type Code, type Problem, problemFrom } from '../shared/contracts/client/problem.ts'

/** A refusal or an outage, with the server's explanation. Status 0: no answer came. */
export class ProblemError extends Error {
  readonly problem: Problem

  constructor(problem: Problem) {
    super(problem.detail)
    this.name = 'ProblemError'
    this.problem = problem
  }

  /** The exact reason, of the closed table of /docs/errors. */
  get code(): Code {
    return this.problem.code
  }
}

/** The problem of an answer that is no success. */
export const problemOf = async (answer: Response): Promise<Problem> =>
  problemFrom(answer.status, await answer.json().catch(() => null), answer.headers.get('retry-after'))

/** The body of an answer, or a ProblemError. */
export const read = async <T>(
  pending: Promise<{ data?: T; error?: unknown; response: Response }>,
): Promise<NonNullable<T>> => {
  const { data, error, response } = await pending
  if (data !== undefined && data !== null && response.ok) return data
  throw new ProblemError(problemFrom(response.status, error, response.headers.get('retry-after')))
}
