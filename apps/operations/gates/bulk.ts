import type { GateRow } from '../../../db/operations/gates/rows.ts'
import type { Alone } from '../../shared/contracts/operations/common.ts'
import { aloneBy, type Most, type Verdict } from '../patches/bulk.ts'

/** Why a gate is decided alone; null if it may be decided together with others (console.md 5.2). */
export const aloneOf = ({ gate, operation }: GateRow, verdict: Verdict, most: Most): Alone | null =>
  gate.kind === 'approval' ? aloneBy([gate.policy], operation.risk_level, verdict, most) : 'kind'
