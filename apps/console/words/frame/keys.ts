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
    ['Esc', 'close'],
  ] as [string, string][],
}
