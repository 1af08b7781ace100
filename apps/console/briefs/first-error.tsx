import { queryOptions, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Fragment } from 'react'
import { reading } from '../api/read.ts'
import { LogText } from '../logs/line.tsx'
import { tOperation } from '../words/operation.ts'

type Failed = { operation_id: string; node_id: string; attempts: number; undo: boolean }
type Part = { level?: 'error' | 'warn'; before_seq?: number; tail?: boolean; limit: number }

const LINES = 5
/** The lines around the first error of the newest attempt; without an error around the first warning, else the last lines. */
const linesQuery = ({ operation_id, node_id, attempts, undo }: Failed) =>
  queryOptions({
    queryKey: ['log-around', operation_id, node_id, attempts, undo],
    queryFn: async ({ signal }) => {
      const role = undo ? ('undo' as const) : ('run' as const)
      const page = (part: Part) =>
        reading('/v1/operations/{operation_id}/nodes/{node_id}/logs', {
          path: { operation_id, node_id },
          query: { role, ...part },
        })({ signal })
      for (const level of ['error', 'warn'] as const) {
        const [first] = (await page({ level, limit: 1 })).lines
        if (first) return { ...(await page({ before_seq: first.seq + 3, limit: LINES })), at: first.seq }
      }
      const end = await page({ tail: true, limit: LINES })
      return { ...end, at: end.last_seq }
    },
  })

/** What a failed node wrote when it failed, with the way to the whole log. */
export const FirstError = (failed: Failed) => {
  const { attempt = 0, lines = [], at = null } = useQuery(linesQuery(failed)).data ?? {}
  const { operation_id, node_id, undo } = failed
  if (at === null) return null
  return (
    <>
      <code className="code mt-1 block font-normal text-text">
        {lines.map(({ seq, text }) => (
          <Fragment key={seq}>
            <bdi>
              <LogText text={text} />
            </bdi>
            {'\n'}
          </Fragment>
        ))}
      </code>
      {undo ? null : (
        // A node's page has no logs of its undo.
        <Link
          to="/operations/$operation_id/nodes/$node_id"
          params={{ operation_id, node_id }}
          search={{ tab: 'logs', attempt }}
          hash={`L${at}`}
        >
          {tOperation.logs.line(at)}
        </Link>
      )}
    </>
  )
}
