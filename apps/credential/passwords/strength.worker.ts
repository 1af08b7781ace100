import { parentPort, workerData } from 'node:worker_threads'
import zxcvbn from 'zxcvbn'
import { loadBreached } from './breached.ts'
import type { StrengthAnswer, StrengthQuestion } from './strength.ts'

/** The estimator in its own thread: a hostile password may block this thread, never the process. */
const isBreached = loadBreached((workerData as { breached_file?: string }).breached_file)

/** Its time grows steeply with the length: 72 characters take about 35 ms, 1,024 take a minute. */
const MAX_CODE_POINTS = 72

const answer = (message: StrengthAnswer) => parentPort?.postMessage(message)

const judge = ({ password, inputs }: StrengthQuestion): StrengthAnswer => {
  const { score, feedback } = zxcvbn([...password].slice(0, MAX_CODE_POINTS).join(''), inputs)
  const { warning, suggestions } = feedback
  return { score, warning: warning ?? '', suggestion: suggestions[0] ?? '', is_breached: isBreached(password) }
}

// The first answer takes longest, so it is computed before anyone waits for one.
judge({ password: 'Tr0mbone-Glacier-Napkin', inputs: [] })
parentPort?.on('message', (question: StrengthQuestion) => answer(judge(question)))
answer('ready')
