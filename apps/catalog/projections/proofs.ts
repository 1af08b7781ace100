import type { Clock } from '../../shared/clock.ts'
import type { PROJECTIONS, Proof } from '../../shared/contracts/catalog/projections.ts'
import { AppError } from '../../shared/errors.ts'
import type { Telemetry } from '../../shared/telemetry.ts'
import type { Compared } from '../graph/compare.ts'
import { timeText } from '../read/documents.ts'

export type Name = (typeof PROJECTIONS)[number]
export type Kind = Proof['kind']
type Found = Compared & { pub_seq: string | null }

/** Runs one proof at a time of each read model of this process, and keeps the last result. */
export const createProofs = ({ clock, telemetry }: { clock: Clock; telemetry: Telemetry }) => {
  const running = new Map<Name, Kind>()
  const last = new Map<Name, Proof>()
  return {
    running: (name: Name) => running.get(name) ?? null,
    last: (name: Name) => last.get(name) ?? null,
    /** Starts a proof without waiting for it. 409 while another proof of that read model runs. */
    start: (name: Name, kind: Kind, work: () => Promise<Found>): void => {
      if (running.has(name)) {
        throw new AppError('version_conflict', 'in_progress', `${name} is already being verified.`, {
          retryable: true,
          retry_after_ms: 1000,
        })
      }
      running.set(name, kind)
      const keep = (result: Proof['result'], found: Found) =>
        last.set(name, { kind, at: timeText(clock.now().toISOString()), result, ...found })
      void work()
        .then((found) => keep(found.differ > 0 ? 'different' : 'equal', found))
        .catch((error) => {
          telemetry.log.error({ err: error, projection: name, kind }, 'a read model could not be proven')
          keep('failed', NOTHING)
        })
        .finally(() => running.delete(name))
    },
  }
}
const NOTHING: Found = {
  pub_seq: null,
  compared: 0,
  differ: 0,
  skipped: 0,
  different: [],
  digests: { live: '', truth: '' },
}
