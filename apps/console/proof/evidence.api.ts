import type { Chain, ChainResult } from '../../shared/contracts/client/browser-chain.ts'
import { api, read } from '../api/client.ts'
import type { Operation } from '../api/types.ts'
import { inWorker } from '../kit/in-worker.ts'

const PAGE = 1000

/**
 * Reads the whole chain again, with the head from the operation itself, and recomputes everything in a worker. Records
 * that arrive meanwhile are read too: the head is read last, until both match. If another round brings none, the chain
 * is checked as it is: it lacks its end.
 */
export const verifyEvidence = async (operation_id: string): Promise<ChainResult> => {
  const records: Chain['records'][number][] = []
  for (let before = -1; ; ) {
    for (let page = PAGE; page === PAGE; ) {
      const { records: more } = await read(
        api.GET('/v1/operations/{operation_id}/evidence', {
          params: { path: { operation_id }, query: { after_seq: records.at(-1)?.seq ?? 0, limit: PAGE } },
        }),
      )
      records.push(...more)
      page = more.length
    }
    const operation: Operation = await read(
      api.GET('/v1/operations/{operation_id}', { params: { path: { operation_id } } }),
    )
    const { evidence_head: head, plan_hash } = operation
    const last = records.at(-1)?.seq ?? 0
    if (last < head.seq && last > before) {
      before = last
      continue
    }
    const { default: url } = await import('../kit/hash.worker.ts?worker&url')
    const chain: Chain = { operation_id, records, plan_hash, head }
    return inWorker<ChainResult>(url, chain)
  }
}
