import type { Chain, ChainResult } from '../../shared/contracts/client/browser-chain.ts'
import { api, read } from '../api/client.ts'
import type { Operation } from '../api/types.ts'
import { workerUrl } from '../kit/worker-url.ts'

const PAGE = 1000

/**
 * Reads the whole chain again, with the head from the operation itself, and recomputes everything in a worker. Records
 * that arrive meanwhile are read too: the head is read last, until both match.
 */
export const verifyEvidence = async (operation_id: string): Promise<ChainResult> => {
  const records: Chain['records'][number][] = []
  for (;;) {
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
    if (head.seq <= records.length) return inWorker({ operation_id, records, plan_hash, head })
  }
}

const inWorker = async (chain: Chain): Promise<ChainResult> => {
  const { default: url } = await import('../kit/hash.worker.ts?worker&url')
  const worker = new Worker(workerUrl(url), { type: 'module' })
  try {
    return await new Promise<ChainResult>((resolve, reject) => {
      worker.onmessage = ({ data }: MessageEvent<ChainResult>) => resolve(data)
      worker.onerror = (event) => reject(new Error(event.message))
      worker.postMessage(chain)
    })
  } finally {
    worker.terminate()
  }
}
