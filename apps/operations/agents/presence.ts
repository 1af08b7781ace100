import { WorkRequest } from '../../shared/contracts/engine/executions.ts'
import { compileSchema } from '../../shared/data/json-schema.ts'
import { prefixed } from '../../shared/events/events.ts'
import { presenceSubject } from '../../shared/events/execution-stream.ts'
import type { Uses } from '../deps.ts'
import type { Seen } from './seen.ts'

const check = compileSchema(WorkRequest)

/**
 * Hears the agents that read the stream and so ask for no work: each describes itself on the subject of its pool, on
 * which only agents of that pool may publish (operations.md 7.4). One process notes each message.
 */
export const hearAgents = ({ config, nats }: Uses<'config' | 'nats'>, seen: Seen): void => {
  const hear = (pool: string, said: WorkRequest): void => {
    if (check(said).length > 0 || !said.agent) return
    const { agent, labels = {} } = said
    const machine = `pool:${pool}`
    const { version = null, concurrency = null, instance, leaves } = agent
    const about = { machine, pools: [pool], complete: true, labels, version, concurrency }
    const one = { agent: `${machine}/${agent.name}`, ...about, draining: leaves === 'draining' }
    void (leaves === 'gone' ? seen.gone(one, instance) : seen.note(one, instance))
  }
  nats.onConnect((nc) => {
    nc.subscribe(prefixed(config.SIGNALBOX__NATS__PREFIX, presenceSubject('*')), {
      queue: 'operations',
      callback: (_error, message) => {
        try {
          hear(message.subject.split('.').at(-1) ?? '', message.json<WorkRequest>())
        } catch {
          // It is no JSON.
        }
      },
    })
  })
}
