import { randomBytes } from 'node:crypto'
import { connect, type NatsConnection } from 'nats'
import type { Work } from '../../shared/contracts/engine/executions.ts'
import {
  cancelSubject,
  EXECUTION_STREAM,
  ensureExecution,
  executionSubject,
} from '../../shared/events/execution-stream.ts'
import type { Ground } from './ground.ts'

/** How work and stops reach the agent under test: it polls, it listens, or it reads the stream. */
export type Door = {
  via: 'pull' | 'push' | 'nats'
  give: (work: Work) => Promise<void>
  /** Tells the agent to stop; `undefined` if only the answers to its reports do. */
  stop?: (work: Work) => Promise<void>
  /** The environment with which the agent finds the door. */
  env: Record<string, string>
  close: () => Promise<void>
}

export const pullDoor = (ground: Ground): Door => ({
  via: 'pull',
  give: async (work) => ground.offer(work),
  env: { SIGNALBOX_URL: ground.url, SIGNALBOX_TOKEN: ground.token },
  close: async () => {},
})

const stopOf = ({ operation_id, node_id, attempt, generation, fence }: Work) =>
  JSON.stringify({ v: 1, operation_id, node_id, attempt, generation, fence })
const PUSH_MS = 5000

export const pushDoor = (endpoint: string): Door => {
  const post = async (url: string, body: string) => {
    const headers = { 'content-type': 'application/json' }
    const answer = await fetch(url, { method: 'POST', headers, body, signal: AbortSignal.timeout(PUSH_MS) })
    await answer.arrayBuffer()
    if (answer.status >= 300) throw new Error(`${url} answered ${answer.status}`)
  }
  return {
    via: 'push',
    give: (work) => post(endpoint, JSON.stringify(work)),
    stop: (work) => post(`${endpoint.replace(/\/+$/, '')}/cancel`, stopOf(work)),
    env: { SIGNALBOX_ENDPOINT: endpoint },
    close: async () => {},
  }
}

/** A stream and a subject separate from those of an installation, removed afterwards. */
export const natsDoor = async (url: string, pool: string): Promise<Door> => {
  const prefix = `proving_${randomBytes(6).toString('hex')}_`
  const nc: NatsConnection = await connect({ servers: url, name: 'signalbox agent conformance', timeout: PUSH_MS })
  await ensureExecution(nc, prefix, pool)
  const subject = `${prefix}.${executionSubject(pool)}`
  const told = `${prefix}.${cancelSubject(pool)}`
  return {
    via: 'nats',
    // No message id, so that an agent may receive the same work twice.
    give: async (work) => void (await nc.jetstream().publish(subject, JSON.stringify(work))),
    stop: async (work) => {
      nc.publish(told, stopOf(work))
      await nc.flush()
    },
    env: { SIGNALBOX_NATS_URL: url, SIGNALBOX_STREAM: `${prefix}${EXECUTION_STREAM}`, SIGNALBOX_SUBJECT: subject },
    close: async () => {
      const jsm = await nc.jetstreamManager()
      await jsm.streams.delete(`${prefix}${EXECUTION_STREAM}`)
      await nc.close()
    },
  }
}
