import { cpus, loadavg } from 'node:os'

/** One JSON line per figure: what was measured, on how many cores, under what load. */
export const printFigure = (figure: Record<string, unknown>): void =>
  console.log(JSON.stringify({ ...figure, cores: cpus().length, load: loadavg()[0] }))
