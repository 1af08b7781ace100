export type Loop = { stop: () => Promise<void> }

/** Does an act now, and again so long after it ended, until it is stopped; an act that is running then ends first. */
export const startLoop = (
  act: () => Promise<unknown>,
  { every_ms, failed }: { every_ms: number; failed: (error: unknown) => void },
): Loop => {
  let stopped = false
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> = Promise.resolve()
  const turn = () => {
    running = act()
      .then(() => undefined)
      .catch(failed)
      .finally(() => {
        if (!stopped) timer = setTimeout(turn, every_ms)
      })
  }
  turn()
  return {
    stop: async () => {
      stopped = true
      clearTimeout(timer)
      await running
    },
  }
}
