/** What scripts branch on (design of the command line: one number, one meaning). */
export const EXIT = {
  done: 0,
  error: 1,
  usage: 2,
  waited: 3,
  person: 4,
  failed: 5,
  cancelled: 6,
  refused: 7,
  changes: 8,
  sign_in: 9,
  /** Ctrl-C, as shells count it. */
  interrupted: 130,
} as const
export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

/** An end that is told in lines on stderr; nothing else of it is shown. */
export class CliError extends Error {
  readonly exit: ExitCode
  readonly lines: string[]
  /** How long to wait before the same request with the same key may be sent again; nothing where that does not help. */
  retry_after_ms: number | undefined
  /** The server was not reached, or not able to answer: reading again later may do. */
  passing = false
  /** The sentence of the API alone. */
  detail = ''
  constructor(exit: ExitCode, ...lines: string[]) {
    super(lines[0])
    this.exit = exit
    this.lines = lines
  }
}

export const usageError = (message: string) =>
  new CliError(EXIT.usage, message, 'hint     signalbox --help lists the commands.')

type Problem = {
  category?: string
  code?: string
  detail?: string
  hint?: string
  request_id?: string
  retryable?: boolean
  retry_after_ms?: number
  violations?: { pointer: string; message: string }[]
}

/** A refusal of the API: category and code for scripts, the sentence and the next step for people. */
export const refused = (status: number, problem: Problem): CliError => {
  const { category = `http_${status}`, code = '', detail = '', hint, request_id, violations = [] } = problem
  const word = status >= 500 ? 'failed  ' : 'refused '
  const error = new CliError(
    exitOf(status, category),
    `${word} ${category}/${code}: ${detail}`,
    ...violations.map(({ pointer, message }) => `         ${pointer || '/'} ${message}`),
    `hint     ${HINTS[code] ?? hint ?? 'Try again later.'}${request_id ? `        request ${request_id}` : ''}`,
  )
  error.passing = status === 429 || status >= 500
  error.detail = detail
  if (problem.retryable) error.retry_after_ms = problem.retry_after_ms ?? 1000
  return error
}

/** Where this client has a word for what the API asks for. */
const HINTS: Record<string, string> = {
  reauth_required: 'Prove it with your password: signalbox login NAME, then the same command again.',
}

const exitOf = (status: number, category: string): ExitCode => {
  if (status === 401) return EXIT.sign_in
  if (category === 'validation_error' && (status === 400 || status === 422)) return EXIT.usage
  if (status === 404 || status === 429 || status >= 500) return EXIT.error
  return EXIT.refused
}
