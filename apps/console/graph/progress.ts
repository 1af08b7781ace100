import { useQuery } from '@tanstack/react-query'
import { queryOf } from '../api/read.ts'
import type { Attempt, NodeDetail } from '../api/types.ts'
import { shown } from '../kit/format.ts'

/** Live frames do not carry it, so it is read again while an attempt runs. */
const EVERY_MS = 5000
const AT_WORK = ['dispatched', 'running', 'compensating'] as const

/** How far an attempt is, as its executor or agent says. Pure. */
export const progressOf = (progress: Attempt['progress']): string | undefined => {
  const message = progress?.message
  return typeof message === 'string' && message.trim() !== '' ? shown(message) : undefined
}

/** For the query of a node: reads it again while an attempt that reports its progress runs. */
export const whileAtWork = ({ state: { data } }: { state: { data: NodeDetail | undefined } }): number | false =>
  data?.attempts.some(({ ended_at, progress }) => ended_at === null && progress !== null) ? EVERY_MS : false

/** How far the running nodes are, by id. Not read while none runs. */
export const useProgress = (operation_id: string, runs: boolean): Readonly<Record<string, string>> => {
  const { data } = useQuery({
    ...queryOf(
      ['progress', operation_id],
      '/v1/operations/{operation_id}/nodes',
      { path: { operation_id }, query: { page_size: 500, state: [...AT_WORK] } },
      { refetchInterval: EVERY_MS },
    ),
    enabled: runs,
    select: ({ items }) =>
      Object.fromEntries(
        items.flatMap(({ node_id, progress }) => {
          const message = progressOf(progress)
          return message === undefined ? [] : [[node_id, message]]
        }),
      ),
  })
  return (runs ? data : undefined) ?? NONE
}
const NONE: Readonly<Record<string, string>> = {}
export const isAtWork = (state: string): boolean => AT_WORK.some((one) => one === state)
