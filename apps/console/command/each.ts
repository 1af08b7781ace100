import type { Problem } from '../../shared/contracts/client/problem.ts'
import type { State } from '../../shared/contracts/client/status.ts'

/** How many requests are sent at once. */
const AT_ONCE = 4

/** The answer to one of several commands. `held`: not sent, or not judged; it is sent again with the same key. */
export type Result =
  | { state: 'sending' }
  /** `recorded`: accepted, but not yet carried out. */
  | { state: 'done'; status: State; recorded: boolean }
  | { state: 'held' | 'refused' | 'unknown'; problem: Problem }

/** Whether the command must still be sent, or its answer is missing. */
export const isLeft = (result: Result | undefined): boolean =>
  result === undefined || result.state === 'held' || result.state === 'unknown' || result.state === 'sending'

/** Whether the same dry run may have another answer later. */
export const mayRepeat = ({ status }: Problem): boolean => [0, 401, 429].includes(status) || status >= 500

/** Sends four at a time. Once an answer says stop, no more are sent. */
export const sendEach = async <Item>(
  items: readonly Item[],
  send: (item: Item) => Promise<'on' | 'stop'>,
): Promise<void> => {
  const left = items.values()
  const state = { stopped: false }
  const work = async () => {
    while (!state.stopped) {
      const { value, done } = left.next()
      if (done) return
      if ((await send(value)) === 'stop') state.stopped = true
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
}
