const LOOK_MS = 1000

/**
 * Calls back when bootstrap.mjs, which started this process, has died without notice, as after a kill -9: otherwise
 * these processes would outlive it. Not used if another parent started this process.
 */
export const watchDoor = (gone: () => void, env: NodeJS.ProcessEnv = process.env): void => {
  const door = process.ppid
  if (env.SIGNALBOX_DOOR !== String(door)) return
  const timer = setInterval(() => {
    if (process.ppid === door) return
    clearInterval(timer)
    gone()
  }, LOOK_MS).unref()
}
