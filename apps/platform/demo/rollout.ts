import { setTimeout as delay } from 'node:timers/promises'
import { previewLines } from '../../cli/operations/gate.ts'
import type { GateList } from '../../shared/contracts/operations/gates.ts'
import type { GateSubject } from '../../shared/contracts/operations/graph.ts'
import type { NodeSummary } from '../../shared/contracts/operations/nodes.ts'
import type { Operation, OperationGraph } from '../../shared/contracts/operations/operations.ts'
import { bold, dim, paint, stateColour, table } from '../../shared/data/print.ts'
import type { Person } from './client.ts'
import type { FleetClient } from './fleet.ts'
import { approveGate, ENDED, releaseIntent, startOperation, waitForGate } from './operations.ts'

const PATIENCE_MS = 15 * 60_000

export type Rollout = {
  operator: Person
  approver: Person
  fleet: FleetClient
  title: string
  hosts: string[]
  release: string
  name: string
  print: (line: string) => void
}

/**
 * Rolls a release out over the hosts as people would: an operator previews and starts, the approver reads and approves
 * each gate, and everyone watches the nodes. Prints each step. Returns the final status of the operation.
 */
export const rollOut = async (rollout: Rollout): Promise<string> => {
  const { operator, fleet, title, hosts, release, name, print } = rollout
  const behind = (await fleet.hosts()).filter((host) => hosts.includes(host.hostname) && host.release !== release)
  if (behind.length === 0) {
    print(bold(`Every host has release ${release} already`))
    await printHosts(fleet, hosts, print)
    return 'succeeded'
  }
  print(bold(`Preview and start "${title}" as ${operator.username}`))
  const { operation_id, plan } = await startOperation(operator, name, releaseIntent(title, hosts, release))
  const { update, nodes, gates } = plan.counts
  const size = `hosts to change: ${update}, nodes: ${nodes}, gates: ${gates}, risk: ${plan.risk.level}`
  print(`  ${size}; the plan is ${dim(plan.plan_hash.slice(0, 19))}`)
  const graph = await operator.get<OperationGraph>(`/v1/plans/${plan.plan_id}/graph`)
  print(`  order: ${orderOf(graph).join(dim(' > '))}`)

  const status = await follow(rollout, operation_id)
  await printHosts(fleet, hosts, print)
  return status
}

/** At rest because of a failed node: only a person's decision moves it. */
const heldBy = ({ status, blocked_on }: Operation): Operation['blocked_on'] =>
  status === 'blocked' || status === 'paused'
    ? blocked_on.filter(({ kind }) => kind === 'failed_node' || kind === 'outcome_unknown')
    : []

/**
 * Prints how the operation goes and approves each of its gates as the approver would. Returns the status at its end, or
 * the one in which a failed node holds it.
 */
export const follow = async (
  { approver, title, print }: Pick<Rollout, 'approver' | 'title' | 'print'>,
  operation_id: string,
): Promise<string> => {
  const seen = new Map<string, string>()
  const end = performance.now() + PATIENCE_MS
  for (;;) {
    const operation = await approver.get<Operation>(`/v1/operations/${operation_id}`)
    await printChanges(approver, operation_id, seen, print)
    const { status, progress } = operation
    if (ENDED.has(status)) {
      const { done, total, failed } = progress
      print(bold(`  ${paint(status, stateColour(status))}: ${done} of ${total} nodes done, ${failed} failed`))
      return status
    }
    const { items } = await approver.get<GateList>(`/v1/operations/${operation_id}/gates?status=waiting`)
    if (items.length > 0) {
      const gate = await waitForGate(approver, operation_id)
      const { releases, bound_outputs = [] } = gate.subject as Partial<GateSubject>
      const opens = `${bold(`Gate "${gate.question}"`)} releases ${releases?.length ?? '?'} nodes`
      print(`${opens}; ${approver.username} approves ${dim(gate.digest.slice(0, 19))}`)
      for (const line of bound_outputs.flatMap(({ value }) => previewLines(value))) print(line)
      await approveGate(approver, operation_id, gate, 'Read and approved.')
    }
    const held = items.length === 0 ? heldBy(operation) : []
    if (held.length > 0) {
      print(bold(`  ${paint(status, stateColour(status))}: ${progress.done} of ${progress.total} nodes done`))
      for (const { message } of held) print(`  ${paint('failed', 'red')} ${message}`)
      print(`  "${title}" waits for a decision in the console, or: npx signalbox op show ${operation_id}`)
      return status
    }
    if (performance.now() > end) throw new Error(`"${title}" did not end within 15 minutes; see it in the console`)
    await delay(300)
  }
}

const orderOf = (graph: OperationGraph): string[] => {
  const order: string[] = []
  for (const node of graph.nodes) if (node.target_id && !order.includes(node.target_id)) order.push(node.target_id)
  return order
}

/** Prints a node's newest state once, when it changes to one worth a line. */
const printChanges = async (
  person: Person,
  operation_id: string,
  seen: Map<string, string>,
  print: (line: string) => void,
) => {
  let page = ''
  do {
    const rows = await person.get<{ items: NodeSummary[]; next_page_token: string | null }>(
      `/v1/operations/${operation_id}/nodes?page_size=500${page}`,
    )
    for (const node of rows.items) {
      if (seen.get(node.node_id) === node.state) continue
      seen.set(node.node_id, node.state)
      if (['succeeded', 'failed', 'backoff', 'outcome_unknown', 'compensated', 'skipped'].includes(node.state)) {
        print(
          `  ${paint(node.state.padEnd(12), stateColour(node.state))} ${node.name}${node.attempt > 1 ? dim(`, attempt ${node.attempt}`) : ''}${node.error_message ? `: ${node.error_message}` : ''}`,
        )
      }
    }
    page = rows.next_page_token ? `&page_token=${encodeURIComponent(rows.next_page_token)}` : ''
  } while (page)
}

const printHosts = async (fleet: FleetClient, hosts: string[], print: (line: string) => void) => {
  const known = (await fleet.hosts()).filter((host) => hosts.includes(host.hostname))
  const rows = await Promise.all(
    known.map(async (host) => {
      const status = (await (await fetch(`${host.base_url}/status`, { signal: AbortSignal.timeout(5000) })).json()) as {
        release: string
        traffic: string
      }
      return [host.hostname, host.base_url, status.release, status.traffic]
    }),
  )
  print(bold('What the hosts answer now'))
  for (const line of table(['host', 'address', 'release', 'traffic'], rows)) print(`  ${line}`)
}
