import type { Problem } from '../shared/contracts/client/problem.ts'

/** Exit codes, for scripts (console.md section 11). */
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
  /** Ctrl-C, as shells number it. */
  interrupted: 130,
} as const
export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

/** An end with an exit code: prints its lines on stderr, without a stack. */
export class CliError extends Error {
  readonly exit: ExitCode
  /** The fault and its remedy in one line; a refusal of the API has more lines. */
  readonly lines: string[]
  /** How long to wait before sending the same request with the same key again; `undefined` if a repeat cannot help. */
  retry_after_ms: number | undefined
  /** The server was unreachable or could not answer: a later read may succeed. */
  passing = false
  /** The detail and the code of a refusal of the API. */
  detail = ''
  code = ''
  /** The two halves of a single line. */
  fault = ''
  remedy = ''
  constructor(exit: ExitCode, ...lines: string[]) {
    super(lines[0])
    this.exit = exit
    this.lines = lines
  }
}

/** A failure in one line: the fault, then the remedy. */
export const failure = (exit: ExitCode, fault: string, remedy = ''): CliError =>
  Object.assign(new CliError(exit, `${fault} ${remedy}`.trimEnd()), { fault, remedy })

/** No object has the given name: ends like a 404 of the API. */
export const missing = (fault: string, remedy?: string): CliError => failure(EXIT.error, fault, remedy)

/** A command line that cannot be carried out. */
export const usageError = (fault: string, remedy?: string): CliError => failure(EXIT.usage, fault, remedy)

export const noDryRun = (): CliError => usageError('This command has no --dry-run. Nothing was changed.')

/** A refusal of the API: category and code for scripts, the detail and the next step for people. */
export const refused = (problem: Problem, remedy: string | undefined): CliError => {
  const { status, category, code, detail, hint = 'Try again later.', request_id, violations = [] } = problem
  const error = new CliError(
    exitOf(problem),
    `${status >= 500 ? 'failed  ' : 'refused '} ${category}/${code}: ${detail}`,
    ...violations.map(({ pointer, message }) => `         ${pointer || '/'} ${message}`),
    `hint     ${remedy ?? HINTS[code] ?? hint}${request_id ? `        request ${request_id}` : ''}`,
  )
  error.detail = detail
  error.code = code
  error.passing = status === 429 || status >= 500
  if (problem.retryable) error.retry_after_ms = problem.retry_after_ms ?? 1000
  return error
}

const HINTS: Record<string, string> = {
  reauth_required: 'Sign in again: signalbox login NAME. Then repeat the command.',
  factor_required: 'Run: signalbox totp set, or add a passkey in the console. Then sign in with it.',
  changed_since: 'Roll back the later change first, or repeat with --anyway: its values are lost.',
  field_owned: 'Leave these fields to their manager, or take them over with --force --reason TEXT.',
}

const exitOf = ({ status, category, code }: Problem): ExitCode => {
  if (code === 'signature_required') return EXIT.person
  if (status === 401) return EXIT.sign_in
  if (category === 'validation_error' && (status === 400 || status === 422)) return EXIT.usage
  if (status === 404 || status === 429 || status >= 500) return EXIT.error
  return EXIT.refused
}
