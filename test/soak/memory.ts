import { quantile } from '../bench/lib/graph.ts'
import { platformMemory } from '../bench/lib/processes.ts'

/** The memory of one part: the median of each third of the time in MiB, and whether it kept growing. */
export type Held = { name: string; thirds: [number, number, number]; grows: boolean }

const EVERY_MS = 5000
/** A part may end this far above its middle third: caches fill, and a heap moves in steps. */
const SHARE = 0.1
const ROOM_MIB = 24

/** Takes samples until `end` is called, which returns each part's memory by thirds. */
export const watchMemory = () => {
  const samples: Record<string, number>[] = []
  const timer = setInterval(() => samples.push(platformMemory()), EVERY_MS)
  const end = (): Held[] => {
    clearInterval(timer)
    const names = [...new Set(samples.flatMap(Object.keys))].filter((name) => name !== 'bare worker').sort()
    return names.map((name) => thirdsOf(name, samples))
  }
  return { end }
}

export const thirdsOf = (name: string, samples: readonly Record<string, number>[]): Held => {
  const third = (n: number): number => {
    const [from, to] = [Math.floor((samples.length * n) / 3), Math.floor((samples.length * (n + 1)) / 3)]
    return quantile(
      samples.slice(from, to).map((sample) => sample[name] ?? 0),
      0.5,
    )
  }
  const thirds: Held['thirds'] = [third(0), third(1), third(2)]
  return { name, thirds, grows: thirds[2] > thirds[1] * (1 + SHARE) + ROOM_MIB }
}
