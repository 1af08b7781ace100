import { readDocument } from '../../contract/documents.ts'
import { closed, faultsOf } from '../../contract/faults.ts'
import type { Call } from './receivers.ts'

const received = readDocument('public').webhooks?.notification?.post
const message = closed(received?.requestBody?.content['application/json']?.schema ?? {})

/** Returns how a delivered message differs from the document: the headers that it lacks, and the faults of its body. */
export const faultsOfWebhook = ({ headers, body }: Call): string[] => {
  const lacking = received?.parameters?.filter(({ name }) => typeof headers[name] !== 'string')
  return [
    ...(lacking?.map(({ name }) => `no ${name}`) ?? ['no webhook is described']),
    ...faultsOf(message, JSON.parse(body)),
  ]
}
