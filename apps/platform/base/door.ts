const LOOK_MS = 1000

/**
 * Calls back when bootstrap.mjs, which started this process, is gone without a word, as after a kill -9: nobody else
 * would end what runs here. A process that was started in another way has no door to watch.
 */
export const watchDoor = (gone: () => void): void => {
  const door = process.ppid
  if (process.env.SIGNALBOX_DOOR !== String(door)) return
  const timer = setInterval(() => {
    if (process.ppid === door) return
    clearInterval(timer)
    gone()
  }, LOOK_MS).unref()
}
