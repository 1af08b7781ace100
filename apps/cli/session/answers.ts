import { ProblemError } from '../../client/index.ts'
import { problemFrom } from '../../shared/contracts/client/problem.ts'
import { whyOf } from '../../shared/errors.ts'
import { CliError, EXIT, failure, refused } from '../errors.ts'

export type Reply<T> = { status: number; headers: Headers; body: T }

/** An answer with its body: JSON as data, anything else as text. Throws a ProblemError for a refusal. */
export const replyOf = async <T>(url: string, answer: Response): Promise<Reply<T>> => {
  const { ok, status, headers } = answer
  const text = await answer.text()
  const type = headers.get('content-type') ?? ''
  const body = /[/+]json\b/.test(type) && text ? JSON.parse(text) : text
  if (!ok) throw new ProblemError(problemFrom(status, body, headers.get('retry-after')))
  if (type.startsWith('text/html')) throw failure(EXIT.error, `${url} is a web page.`, OTHER_ADDRESS)
  return { status, headers, body: body as T }
}

/** The result of `act`. A refusal or outage (status 0) becomes readable lines, with a known or a general remedy. */
export const told = async <T>(
  url: string,
  act: () => Promise<T>,
  remedyOf: (failed: { status: number }) => string | undefined = () => undefined,
): Promise<T> => {
  try {
    return await act()
  } catch (error) {
    if (error instanceof CliError) throw error
    if (error instanceof ProblemError) {
      const { problem } = error
      if (!problem.code.startsWith('status_')) throw refused(problem, remedyOf(problem))
      throw passing(
        `${url} answered ${problem.status} without an explanation. It may not be a Signalbox server.`,
        OTHER_ADDRESS,
      )
    }
    const why = whyOf(error)
    const fault = error instanceof SyntaxError ? 'gave an unreadable answer' : 'did not answer'
    throw passing(`${url} ${fault}: ${why.replace(/\.$/, '')}.`, remedyOf({ status: 0 }) ?? OTHER_ADDRESS)
  }
}

const OTHER_ADDRESS = 'Start the platform, or name another address: --url, --context or SIGNALBOX_URL.'

const passing = (fault: string, remedy: string): CliError =>
  Object.assign(failure(EXIT.error, fault, remedy), { passing: true })
