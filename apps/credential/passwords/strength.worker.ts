import { parentPort, workerData } from 'node:worker_threads'
import zxcvbn from 'zxcvbn'
import { loadBreached } from './breached.ts'
import type { StrengthAnswer, StrengthQuestion } from './strength.ts'

/** The estimator in a thread of its own: a hostile password may keep this thread busy, never the process. */
const isBreached = loadBreached((workerData as { breached_file?: string }).breached_file)

/** Its time grows steeply with the length: 72 characters take about 35 ms, 1,024 take a minute. */
const MAX_CODE_POINTS = 72

const answer = (message: StrengthAnswer) => parentPort?.postMessage(message)

parentPort?.on('message', ({ password, inputs }: StrengthQuestion) => {
  const { score, feedback } = zxcvbn([...password].slice(0, MAX_CODE_POINTS).join(''), inputs)
  answer({
    score,
    warning: feedback.warning ?? '',
    suggestion: feedback.suggestions[0] ?? '',
    is_breached: isBreached(password),
  })
})
answer('ready')
