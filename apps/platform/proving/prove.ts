import Type, { type Static } from 'typebox'
import { Closed } from '../../shared/contracts/shapes.ts'
import { CHECKS, type Check } from './checks.ts'
import { type Door, natsDoor, pullDoor, pushDoor } from './doors.ts'
import { openGround } from './ground.ts'
import { Broken, type Jobs, openLab } from './lab.ts'
import type { Attempt } from './rules.ts'

const Job = Closed({ job: Type.String({ minLength: 1 }), inputs: Type.Record(Type.String(), Type.Unknown()) })

/** The jobs that prove an agent. `$FILE` in their inputs is the path of a file. */
export const ConformanceFile = Closed({
  format: Type.Literal('signalbox/agent-conformance@1'),
  /** The pool that the agent polls, if it cannot read SIGNALBOX_POOL. */
  pool: Type.Optional(Type.String({ pattern: '^[a-z][a-z0-9-]{0,62}$' })),
  jobs: Closed({
    /** Adds one line to $FILE and succeeds within ten seconds. */
    effect: Job,
    /** Adds a line to $FILE each second until it is stopped. */
    ticks: Job,
    /** Writes a line of 100,000 characters, then 3,000 lines, to its log, and succeeds. */
    loud: Job,
  }),
})
export type ConformanceFile = Static<typeof ConformanceFile>

export type Proof = { id: string; says: string /** What it broke; none if it holds. */; broken: string[] }
export type Asked = {
  file: ConformanceFile
  /** Starts the agent; a shell interprets it. */
  command: string
  /** Where the agent listens for work, or the server whose stream it reads; otherwise it polls. */
  endpoint?: string | undefined
  nats?: string | undefined
  only?: readonly string[] | undefined
  /** How many pieces of work the agent does at once. */
  concurrency: number
  told?: (proof: Proof) => void
}
const POOL = 'conformance'

/** Proves an agent against the protocol, check by check; starts and ends its process. */
export const proveAgent = async (asked: Asked): Promise<Proof[]> => {
  const { file, concurrency } = asked
  const ground = await openGround(file.pool ?? POOL)
  let door: Door | undefined
  let lab: ReturnType<typeof openLab> | undefined
  const proofs: Proof[] = []
  try {
    door = asked.nats
      ? await natsDoor(asked.nats, ground.pool)
      : asked.endpoint
        ? pushDoor(asked.endpoint)
        : pullDoor(ground)
    const { via } = door
    const checks = CHECKS.filter((check) => check.via?.includes(via) ?? true).filter(
      ({ id }) => asked.only?.includes(id) ?? true,
    )
    lab = openLab(ground, door, file.jobs as Jobs, asked.command)
    const open = lab
    const run = async (check: Check) => {
      const proof = await proofOf(check, open)
      proofs.push(proof)
      asked.told?.(proof)
    }
    await open.start()
    const together = checks.filter(({ alone }) => !alone)
    await Promise.all(
      Array.from({ length: Math.max(concurrency, 1) }, async () => {
        for (let check = together.shift(); check; check = together.shift()) await run(check)
      }),
    )
    for (const check of checks.filter(({ alone }) => alone)) {
      await open.stop()
      await open.start()
      await run(check)
    }
    return CHECKS.flatMap(({ id }) => proofs.filter((proof) => proof.id === id))
  } finally {
    await lab?.stop()
    await door?.close().catch(() => {})
    ground.close()
  }
}

const proofOf = async ({ id, says, prove }: Check, lab: ReturnType<typeof openLab>): Promise<Proof> => {
  const attempts: Attempt[] = []
  const broken = new Set<string>()
  try {
    await prove(lab, (attempt) => {
      attempts.push(attempt)
      return attempt
    })
  } catch (error) {
    if (!(error instanceof Broken)) throw error
    broken.add(error.message)
  }
  for (const { faults } of attempts) for (const fault of faults) broken.add(fault)
  return { id, says, broken: [...broken] }
}
