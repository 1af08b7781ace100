import { expect, it } from 'vitest'
import { drawnOf, foldsOf } from '../../apps/console/logs/folds.ts'
import type { LogLine } from '../../apps/shared/contracts/client/frames.ts'

const log = (...texts: string[]): LogLine[] =>
  texts.map((text, at) => ({
    ...{ seq: at + 1, time: '', stream: 'log', level: text.startsWith('!') ? 'error' : 'info', text },
  }))
const shown = (lines: LogLine[], turned: [number, boolean][] = []) =>
  drawnOf(lines, foldsOf(lines), new Map(turned)).map(({ line }) => line.seq)

const LINES = log(
  'begin',
  '::group::Install',
  'a',
  '!b',
  '::endgroup::',
  'between',
  '--- Verify',
  'c',
  '--- Report',
  'd',
)

it('finds the named parts of a log with their lines and errors, each up to the next one', () => {
  expect(foldsOf(LINES)).toMatchObject([
    { seq: 2, to: 5, title: 'Install', count: 2, errors: 1, folded: true },
    { seq: 7, to: 8, title: 'Verify', count: 1, errors: 0, folded: false },
    { seq: 9, to: 10, title: 'Report', count: 1, errors: 0, folded: false },
  ])
  expect(foldsOf(log('--- a/file', '--- /dev/null', '---', '::endgroup::', '::group::'))).toEqual([])
})

it('leaves out the lines of a group that has ended, and of any part that a person closes', () => {
  expect(shown(LINES)).toEqual([1, 2, 6, 7, 8, 9, 10])
  expect(shown(LINES, [[2, true]])).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
  expect(shown(LINES, [[7, false]])).toEqual([1, 2, 6, 7, 9, 10])
  // Its end is not known yet: a running group, or the middle of a long log.
  expect(shown(LINES.slice(0, 4))).toEqual([1, 2, 3, 4])
  expect(shown(log('::group::one', 'a', '::group::two', 'b'))).toEqual([1, 3, 4])
})
