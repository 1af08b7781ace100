/**
 * Crash points of the fault tests: with SIGNALBOX_CRASH_AT=<name>[@n] in the environment the process kills itself,
 * without any cleanup, when it passes that point for the n-th time. An app refuses to start with it in production.
 */
const [target, nth] = (process.env.SIGNALBOX_CRASH_AT ?? '').split('@')
let passes = 0

export const crashPoint = (name: string): void => {
  if (!target || target !== name) return
  passes += 1
  if (passes >= Number(nth ?? 1)) process.kill(process.pid, 'SIGKILL')
}
