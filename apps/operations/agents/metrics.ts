import type { Db } from '../../../db/client.ts'
import { readAgents } from '../../../db/operations/agents/measured.ts'
import { type MeasuredGauge, measure } from '../../shared/process/measured.ts'
import type { Telemetry } from '../../shared/telemetry.ts'

const GAUGES: readonly MeasuredGauge[] = [
  ['signalbox_agents', 'Agents by pool and status.', 'pool', 'status'],
  ['signalbox_agent_seen_seconds', 'Since the last sign of life of any agent of the pool.', 'pool'],
  ['signalbox_agent_work', 'Work of agents: queued for a place, waiting for an agent, or running.', 'pool', 'state'],
  ['signalbox_agent_wait_oldest_seconds', 'How long the oldest work of the pool has waited for an agent.', 'pool'],
]
const RESULTS = ['succeeded', 'failed', 'unknown'] as const

/** Reports the agents and their work as metrics. */
export const measureAgents = (db: Db, telemetry: Telemetry): void => measure(telemetry, GAUGES, () => readAgents(db))

export const attemptsOf = (telemetry: Telemetry) =>
  telemetry.counter('signalbox_agent_attempts_total', 'Attempts that agents have ended, by result.', ['pool', 'result'])

/** A pool whose first attempt fails has then grown from zero. */
export const beginAttempts = (telemetry: Telemetry, pools: readonly string[]): void => {
  for (const pool of pools) for (const result of RESULTS) attemptsOf(telemetry).inc({ pool, result }, 0)
}
