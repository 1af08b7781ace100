import type { LogLine } from '../../shared/contracts/client/frames.ts'

/** A named part of a log: the line that names it, and its last line held; `folded` unless a person opens it. */
export type Fold = { seq: number; to: number; title: string; count: number; errors: number; folded: boolean }
/** A line to draw, with the part that it begins. */
export type Drawn = { line: LogLine; fold: Fold | undefined; open: boolean }

/** `::group::title` or `--- title`; the head of a diff is no title. */
const HEAD = /^(::group::|--- (?![ab]?\/))\s*(\S.*)$/
const END = '::endgroup::'

/** The parts of the held lines, each up to the next one. A group is folded once its end is known. */
export const foldsOf = (lines: readonly LogLine[]): Fold[] => {
  const folds: Fold[] = []
  let last: (Fold & { group: boolean }) | undefined
  for (const { seq, level, text } of lines) {
    const [, sign, title] = HEAD.exec(text) ?? []
    if (last?.group && (title !== undefined || text === END)) last.folded = true
    if (title !== undefined) {
      last = { seq, to: seq, title, count: 0, errors: 0, folded: false, group: sign === '::group::' }
      folds.push(last)
    } else if (last !== undefined) {
      last.to = seq
      if (text === END && last.group) last = undefined
      else {
        last.count += 1
        last.errors += level === 'error' ? 1 : 0
      }
    }
  }
  return folds
}

/** Whether the lines of a part are shown; what a person has turned comes first. */
export const isOpen = ({ seq, folded }: Fold, turned: ReadonlyMap<number, boolean>): boolean =>
  turned.get(seq) ?? !folded

/** The lines without those of closed parts. */
export const drawnOf = (
  lines: readonly LogLine[],
  folds: readonly Fold[],
  turned: ReadonlyMap<number, boolean>,
): Drawn[] => {
  const heads = new Map(folds.map((fold) => [fold.seq, fold]))
  let hidden_to = 0
  return lines.flatMap((line) => {
    if (line.seq <= hidden_to) return []
    const fold = heads.get(line.seq)
    const open = fold === undefined || isOpen(fold, turned)
    if (fold && !open) hidden_to = fold.to
    return { line, fold, open }
  })
}
