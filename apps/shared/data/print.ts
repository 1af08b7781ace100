import { stripVTControlCharacters, styleText } from 'node:util'

type Colour = 'green' | 'red' | 'yellow' | 'cyan' | 'magenta' | 'gray'

/** Node 20 styles every text it is given, so this asks the stream, which knows NO_COLOR and FORCE_COLOR. */
const styled = (style: Colour | 'bold' | 'dim', text: string): string =>
  process.stdout.isTTY && process.stdout.hasColors() ? styleText(style, text, { validateStream: false }) : text

export const paint = (text: string, colour: Colour): string => styled(colour, text)
export const bold = (text: string): string => styled('bold', text)
export const dim = (text: string): string => styled('dim', text)

/** Returns the color of a state word; the word itself is always shown, too. */
export const stateColour = (state: string): Colour =>
  /succeeded|compensated|approved/.test(state)
    ? 'green'
    : /fail|unknown|timed_out|rejected/.test(state)
      ? 'red'
      : /backoff|waiting|blocked/.test(state)
        ? 'yellow'
        : /cancel|skip/.test(state)
          ? 'gray'
          : 'cyan'

/** Returns the lines of a plain table, as wide as its widest cells. */
export const table = (head: string[], rows: string[][]): string[] => {
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => stripVTControlCharacters(row[column] ?? '').length)),
  )
  const line = (cells: string[]) =>
    cells
      .map(
        (cell, column) => cell + ' '.repeat(Math.max(0, (widths[column] ?? 0) - stripVTControlCharacters(cell).length)),
      )
      .join('  ')
      .trimEnd()
  return [dim(line(head)), ...rows.map(line)]
}
