import { and, eq, inArray, sql } from 'drizzle-orm'
import type { GateStatus, GateSubject } from '../../../apps/shared/contracts/operations/graph.ts'
import { digest } from '../../../apps/shared/data/digest.ts'
import { readPointer } from '../../../apps/shared/data/pointer.ts'
import { type Queryable, type Tx, updateRows } from '../../client.ts'
import { gates, nodes } from '../tables/index.ts'
import type { NewSubject } from './ask.ts'

/**
 * Gates whose policy names upstream outputs (`binds`), with current values (operations.md 3.3). A reference is
 * `nodes/<node or step>/outputs/<pointer>`, and one to a step binds all its nodes. Only those whose subject changes.
 */
export const listRebound = async (
  db: Queryable,
  operation_id: string,
  of: { gate_id: string } | { status: GateStatus[] },
): Promise<NewSubject[]> => {
  const own = eq(gates.operation_id, operation_id)
  const bound = await db
    .select({ gate_id: gates.gate_id, policy: gates.policy, subject: gates.subject, digest: gates.digest })
    .from(gates)
    .where(
      and(
        own,
        'gate_id' in of ? eq(gates.gate_id, of.gate_id) : inArray(gates.status, of.status),
        sql`jsonb_array_length(${gates.policy} -> 'binds') > 0`,
      ),
    )
  if (bound.length === 0) return []
  const outputs = await db
    .select({ node_id: nodes.node_id, outputs: nodes.outputs })
    .from(nodes)
    .where(and(eq(nodes.operation_id, operation_id), sql`${nodes.outputs} is not null`))
    .orderBy(nodes.ordinal)
  return bound.flatMap(({ gate_id, policy, subject, digest: before }) => {
    const bound_outputs = policy.binds.flatMap((reference) => valuesOf(reference, outputs))
    const next: GateSubject = { ...subject, bound_outputs }
    const now = digest(next)
    return now === before ? [] : [{ gate_id, subject: next, digest: now }]
  })
}

type Outputs = { node_id: string; outputs: Record<string, unknown> | null }[]

const valuesOf = (reference: string, all: Outputs): GateSubject['bound_outputs'] => {
  const [, name = '', pointer = ''] = /^nodes\/([^/]+)\/outputs(\/.*)?$/.exec(reference) ?? []
  return all
    .filter(({ node_id }) => node_id === name || node_id.startsWith(`${name}.`))
    .map(({ node_id, outputs }) => ({
      pointer: `nodes/${node_id}/outputs${pointer}`,
      value: readPointer(outputs, pointer) ?? null,
    }))
}

/** Fixes the bound outputs of a gate that is about to open. */
export const bindOutputs = async (tx: Tx, operation_id: string, gate_id: string): Promise<void> => {
  for (const { subject, digest: now } of await listRebound(tx, operation_id, { gate_id }))
    await updateRows(tx, { operation_id, gate_id, status: 'armed' }, gates, { subject, digest: now })
}
