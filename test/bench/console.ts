import { cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import { ROOT } from '../../apps/platform/base/paths.ts'
import { table } from '../../apps/shared/data/print.ts'
import { closeDesk, openDesk } from '../e2e/desk.ts'
import { SCREENS, scriptsOf } from '../support/console-bytes.ts'
import { benchGraph, benchIdle, benchInbox, benchLog, benchNews, type Figure } from './console/figures.ts'
import { chosen } from './lib/chosen.ts'
import { printFigure } from './lib/print.ts'

/**
 * `npm run bench:console`: each target for the console's speed next to what the production build achieves in a real
 * Chromium, on a platform of its own. Bytes and counts are also tests; times are those of this machine at this moment.
 */
const bytes = async (): Promise<Figure[]> =>
  Object.entries(SCREENS).map(([name, { page, most }]) => ({
    name: `scripts of ${name}, compressed`,
    value: scriptsOf(join(ROOT, '.signalbox/test-console'), page).bytes / 1000,
    most: most / 1000,
    unit: 'KB',
  }))
const FIGURES = { bytes, inbox: benchInbox, graph: benchGraph, news: benchNews, log: benchLog, idle: benchIdle }

const rowOf = ({ name, value, most, unit }: Figure): string[] => [
  name,
  `${value.toFixed(value < 10 ? 2 : 0)} ${unit}`.trim(),
  `${most} ${unit}`.trim(),
  value <= most ? 'met' : 'missed',
]

const { wanted } = chosen(FIGURES)
await openDesk()
try {
  const rows: string[][] = []
  for (const [name, measure] of wanted) {
    console.error(name)
    // A figure that cannot be taken is reported, and the others are still taken.
    const figures = await measure().catch((error: unknown) => void console.error(`${name}: ${error}`))
    if (figures === undefined) rows.push([name, 'not measured', '', ''])
    for (const figure of figures ?? []) {
      printFigure(figure)
      rows.push(rowOf(figure))
    }
  }
  console.log(`\n${cpus().length} cores, load ${loadavg()[0]?.toFixed(1)}\n`)
  for (const line of table(['figure', 'measured', 'at most', ''], rows)) console.log(line)
} finally {
  await closeDesk()
}
