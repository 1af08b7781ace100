import { readDocument } from '../../contract/documents.ts'
import { closed, faultsOf } from '../../contract/faults.ts'
import type { Call } from './receivers.ts'
import type { StreamFrame } from './stream.ts'

const document = readDocument('public')
const received = document.webhooks?.notification?.post
const message = closed(received?.requestBody?.content['application/json']?.schema ?? { not: {} })

/** Returns how a delivered message differs from the document: the headers that it lacks, and the faults of its body. */
export const faultsOfWebhook = ({ headers, body }: Call): string[] => {
  const lacking = received?.parameters?.filter(({ name }) => typeof headers[name] !== 'string') ?? []
  return [...lacking.map(({ name }) => `no ${name}`), ...faultsOf(message, JSON.parse(body))]
}

const streamed = document.paths['/api/v1/events']?.get?.responses[200]
const items = streamed && 'content' in streamed ? streamed.content?.['text/event-stream']?.['x-itemSchema']?.anyOf : []
const frames = new Map(items?.map((schema) => [schema.properties?.event?.const, closed(schema)] as const))

/** Returns how a frame of the live stream differs from the document. */
export const faultsOfFrame = (frame: StreamFrame): string[] =>
  faultsOf(frames.get(frame.event) ?? { not: {} }, frame).map((fault) => `${frame.event}${fault}`)

/** Whether the document lists an answer of this status. */
export const isDescribed = (method: 'post' | 'put', path: string, status: number): boolean =>
  document.paths[path]?.[method]?.responses[status] !== undefined
