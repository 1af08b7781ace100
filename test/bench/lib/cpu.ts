import { readFileSync } from 'node:fs'

export const TICK_MS = 10

/** The parent of a process, and the ticks of user and system time that it has used. */
export const statOf = (pid: number): { parent: number; ticks: number } => {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return { parent: Number(fields[1]), ticks: Number(fields[11]) + Number(fields[12]) }
}

const ticksOf = (pid: number): number => statOf(pid).ticks

/** Milliseconds of CPU, user and system, that each process has used since this call. Linux only. */
export const cpuSince = (pids: Record<string, number>) => {
  const before = Object.fromEntries(Object.entries(pids).map(([name, pid]) => [name, ticksOf(pid)]))
  return (): Record<string, number> =>
    Object.fromEntries(
      Object.entries(pids).map(([name, pid]) => [name, (ticksOf(pid) - (before[name] ?? 0)) * TICK_MS]),
    )
}

/** Resident memory of a process in MiB. */
export const residentMib = (pid: number): number =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? Number.NaN) / 1024
