/** Keys that work on every page. */
export const keys = {
  title: 'Keyboard shortcuts',
  entries: [
    ['?', 'this list'],
    ['/', 'search on this page'],
    ['Ctrl K', 'go to a page, operation or resource'],
    ['n', 'new change, action or runbook'],
    ['g i', 'inbox'],
    ['g o', 'operations'],
    ['g n', 'intents'],
    ['g r', 'resources'],
    ['g f', 'freezes'],
    ['g p', 'packs'],
    ['j, k', 'next, previous row'],
    ['x', 'select a gate or patch in the inbox'],
    ['[, ]', 'previous, next tab'],
    ['e, E', 'in a log: next, previous error'],
    ['w, t, f', 'in a log: wrap lines, show times, follow the end'],
    ['y, c', 'in a log: copy the link, the selected lines'],
    ['Esc', 'close'],
  ] as [string, string][],
}
