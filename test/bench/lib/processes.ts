import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { statOf, TICK_MS } from './cpu.ts'

type Process = { pid: number; parent: number; ticks: number; name: string }

/** The name of a process in the tables: our apps by folder, with their helper processes, and servers by program. */
const nameOf = (command: string): string | undefined => {
  const app = /\/apps\/([a-z]+)\/(?:\S*\.process|main)\.ts/.exec(command)?.[1]
  if (app !== undefined) return app
  if (command.includes('bench/bare/')) return 'bare worker'
  return /postgres|temporal|nats-server|redis-server/.exec(command.split(' ')[0] ?? '')?.[0].replace('-server', '')
}

const listProcesses = (): Process[] =>
  readdirSync('/proc').flatMap((entry) => {
    if (!/^\d+$/.test(entry)) return []
    try {
      const pid = Number(entry)
      const name = nameOf(readFileSync(`/proc/${entry}/cmdline`, 'utf8').replaceAll('\0', ' '))
      return [{ pid, name: name ?? '', ...statOf(pid) }]
    } catch {
      return []
    }
  })

/** The processes that this run has started, by pid. */
const ourProcesses = (): Map<number, Process> => {
  const processes = listProcesses()
  const ours = new Set([process.ppid])
  for (let before = 0; before < ours.size; ) {
    before = ours.size
    for (const { pid, parent } of processes) if (ours.has(parent)) ours.add(pid)
  }
  return new Map(processes.flatMap((one) => (ours.has(one.pid) && one.name !== '' ? [[one.pid, one] as const] : [])))
}

/**
 * Milliseconds of CPU that each part of the running platform has used since this call, servers included. The processes
 * of a server count together, and one that has ended in the meantime subtracts nothing. Linux only.
 */
export const platformCpuSince = () => {
  const before = ourProcesses()
  return (): Record<string, number> => {
    const used: Record<string, number> = {}
    for (const { pid, name, ticks } of ourProcesses().values())
      used[name] = (used[name] ?? 0) + (ticks - (before.get(pid)?.ticks ?? 0)) * TICK_MS
    return used
  }
}

/** Its share of memory in MiB; memory shared by the processes of one server counts once. */
const shareOf = (pid: number): number => {
  try {
    return Number(/^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0) / 1024
  } catch {
    return 0
  }
}

/** MiB of memory that each part of the running platform holds, servers included. Linux only. */
export const platformMemory = (): Record<string, number> => {
  const held: Record<string, number> = {}
  for (const { pid, name } of ourProcesses().values()) held[name] = (held[name] ?? 0) + shareOf(pid)
  return held
}

const IDLE_S = 10

/** Milliseconds of CPU that each part uses per second while it serves no requests. */
export const idleCpu = async (): Promise<Record<string, number>> => {
  console.error(`idle for ${IDLE_S} s`)
  const cpu = platformCpuSince()
  await delay(IDLE_S * 1000)
  return Object.fromEntries(Object.entries(cpu()).map(([name, ms]) => [name, ms / IDLE_S]))
}
