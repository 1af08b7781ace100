import { plural } from './plural.ts'

const count = (n: number, one: string, other: string): string => plural('en', n, { one, other })

/** Words of the inbox. */
export const inbox = {
  title: 'Inbox',
  sentence: (mine: number, all: number) =>
    mine > 0
      ? count(mine, 'One gate needs your vote.', '{n} gates need your vote.')
      : all > 0
        ? count(
            all,
            'No gates need your vote. One gate is waiting for others.',
            'No gates need your vote. {n} gates are waiting for others.',
          )
        : 'No gates are waiting.',
  mine: 'For me',
  all: 'All',
  filter: 'Gates',
  empty: 'No gates need your vote.',
  empty_all: 'No gates are waiting.',
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
    'The gates that need your vote are below: review the changes, then approve or reject.',
    'Operations lists everything that runs or has failed, with live graphs and logs.',
  ],
  guide_close: 'Do not show this again',
}
