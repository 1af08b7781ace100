import { plural } from './plural.ts'

const count = (n: number, one: string, other: string): string => plural('en', n, { one, other })

type Counts = { gates_mine: number; gates_all: number; patches_mine: number; failures_mine: number }

/** Words of the inbox. */
export const inbox = {
  title: 'Inbox',
  sentence: ({ gates_mine, gates_all, patches_mine, failures_mine }: Counts) => {
    const mine = [
      gates_mine > 0 && count(gates_mine, 'one gate', '{n} gates'),
      patches_mine > 0 && count(patches_mine, 'one patch', '{n} patches'),
      failures_mine > 0 && count(failures_mine, 'one failure', '{n} failures'),
    ].filter((part) => part !== false)
    if (mine.length > 0) {
      const list = new Intl.ListFormat('en').format(mine)
      const one = gates_mine + patches_mine + failures_mine === 1
      return `${list.charAt(0).toUpperCase()}${list.slice(1)} ${one ? 'waits' : 'wait'} for you.`
    }
    return gates_all > 0
      ? count(
          gates_all,
          'Your inbox is empty. One gate waits for others.',
          'Your inbox is empty. {n} gates wait for others.',
        )
      : 'The inbox is empty.'
  },
  patch: 'Patch',
  failure: 'Failure',
  patch_changes: (n: number) => count(n, 'one change', '{n} changes'),
  more_failures: (n: number) => count(n, 'and one more', 'and {n} more'),
  rest: 'Failures and patches',
  mine: 'For me',
  all: 'All',
  filter: 'Whose',
  empty: 'Your inbox is empty.',
  empty_all: 'The inbox is empty.',
  see_others: (n: number) => count(n, 'One gate is waiting for others', '{n} gates are waiting for others'),
  see_operations: 'See running operations',
  waiting_since: 'Waiting since',
  expires: 'Expires',
  and_then: (what: string) => `then ${what}`,
  votes: 'Votes',
  who: 'Who may vote',
  changes: 'Changes',
  risk: 'Risk',
  not_you: 'You cannot decide this gate',
  decided: (word: string, who: string, at: string) => `${word} by ${who}, ${at}`,
  guide_title: 'New here?',
  guide: [
    'An operation carries out a reviewed plan, node by node. A gate holds it until a person decides.',
    'What waits for you is below: decide on gates and patches, and mend what failed.',
    'Operations lists everything that runs or has failed, with live graphs and logs.',
  ],
  guide_close: 'Do not show this again',
}
