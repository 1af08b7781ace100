import type { Timing } from '../graph/graph.ts'

/** How many standard deviations the 90th percentile lies above the median. */
const Z90 = 1.2816
const MAX_FACTOR = 20

/**
 * Returns a duration in whole milliseconds, drawn for one attempt by its key alone: other work and its order do not
 * affect it. Log-normal between the measured median and 90th percentile, at most 20 times the median.
 */
export const drawDuration = (key: string, { p50_s, p90_s }: Timing): number => {
  if (p50_s <= 0) return 0
  const spread = Math.log(Math.max(p90_s, p50_s) / p50_s) / Z90
  return Math.round(1000 * p50_s * Math.min(Math.exp(spread * normalOf(key)), MAX_FACTOR))
}

/** Returns a draw from the standard normal distribution (Box-Muller) that depends on the key alone. */
const normalOf = (key: string): number => {
  const next = uniform(hashOf(key))
  return Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next())
}

/** FNV-1a, 32 bits. */
const hashOf = (text: string): number => {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash >>> 0
}

/** Numbers in [0, 1) from a 32-bit seed (a Weyl sequence, each value mixed). */
const uniform = (seed: number) => {
  let state = seed
  return () => {
    state = (state + 0x9e3779b9) >>> 0
    let mixed = Math.imul(state ^ (state >>> 16), 0x85ebca6b)
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
    return ((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 32
  }
}
