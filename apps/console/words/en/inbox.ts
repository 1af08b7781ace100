import { plural } from './plural.ts'

const count = (n: number, one: string, other: string): string => plural('en', n, { one, other })

/** Words of the inbox. */
export const inbox = {
  title: 'Inbox',
  sentence: (mine: number, all: number) =>
    mine > 0
      ? count(mine, 'One gate waits for you.', '{n} gates wait for you.')
      : all > 0
        ? count(
            all,
            'Nothing waits for you. One gate waits for others.',
            'Nothing waits for you. {n} gates wait for others.',
          )
        : 'Nothing waits for a person.',
  mine: 'For me',
  all: 'All',
  filter: 'Which gates',
  empty: 'Nothing waits for you.',
  empty_all: 'No gate waits for anybody.',
  see_others: (n: number) => count(n, 'One gate waits for others', '{n} gates wait for others'),
  see_operations: 'See what is running',
  waiting_since: 'Waiting since',
  expires: 'Expires',
  and_then: (what: string) => `then ${what}`,
  votes: 'Votes',
  who: 'Who may vote',
  changes: 'Changes',
  risk: 'Risk',
  not_you: 'You cannot decide this one',
  decided: (word: string, who: string, at: string) => `${word} by ${who}, ${at}`,
  guide_title: 'New here?',
  guide: [
    'An operation carries out a reviewed plan, node by node. A gate stops it until a person has looked.',
    'A gate that waits for you stands below: read what will change, and approve or reject it.',
    'Operations shows what runs and what has failed; graphs and logs are live.',
  ],
  guide_close: 'Do not show this again',
}
