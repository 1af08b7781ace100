import { readdirSync, readFileSync } from 'node:fs'
import { statOf, TICK_MS } from './cpu.ts'

type Process = { pid: number; parent: number; ticks: number; name: string }

/** What a process is in the tables: an app of ours by its folder, a server by its program. */
const nameOf = (command: string): string | undefined => {
  const app = /\/apps\/([a-z]+)\/main\.ts/.exec(command)?.[1]
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

/** Ticks of all that this run has begun, by name; the processes of a server count together. */
const ticksByName = (): Map<string, number> => {
  const processes = listProcesses()
  const ours = new Set([process.ppid])
  for (let before = 0; before < ours.size; ) {
    before = ours.size
    for (const { pid, parent } of processes) if (ours.has(parent)) ours.add(pid)
  }
  const ticks = new Map<string, number>()
  for (const { pid, name, ticks: used } of processes)
    if (ours.has(pid) && name !== '') ticks.set(name, (ticks.get(name) ?? 0) + used)
  return ticks
}

/** Milliseconds of CPU that each part of the running platform has used since this call, servers included. Linux only. */
export const platformCpuSince = () => {
  const before = ticksByName()
  return (): Record<string, number> =>
    Object.fromEntries([...ticksByName()].map(([name, ticks]) => [name, (ticks - (before.get(name) ?? 0)) * TICK_MS]))
}
