import { count, list } from './plural.ts'

type Counts = { gates_mine: number; gates_all: number; patches_mine: number; failures_mine: number }

export type Noun = 'gate' | 'patch' | 'item'
export const MANY: Record<Noun, string> = { gate: 'gates', patch: 'patches', item: 'items' }

/** Texts for the inbox. */
export const inbox = {
  title: 'Inbox',
  /** `lines`: failures, patches or deadlines are shown, of whoever they are. */
  sentence: ({ gates_mine, gates_all, patches_mine, failures_mine }: Counts, lines: boolean) => {
    const mine = [
      gates_mine > 0 && count(gates_mine, 'one gate', '{n} gates'),
      patches_mine > 0 && count(patches_mine, 'one patch', '{n} patches'),
      failures_mine > 0 && count(failures_mine, 'one operation', '{n} operations'),
    ].filter((part) => part !== false)
    if (mine.length > 0) {
      const all = list.format(mine)
      const one = gates_mine + patches_mine + failures_mine === 1
      return `${all.charAt(0).toUpperCase()}${all.slice(1)} ${one ? 'waits' : 'wait'} for you.`
    }
    const none = lines ? 'No decisions wait for you.' : 'Your inbox is empty.'
    return gates_all > 0
      ? count(gates_all, `${none} One gate waits for others.`, `${none} {n} gates wait for others.`)
      : lines
        ? none
        : 'The inbox is empty.'
  },
  news: (n: number) => count(n, '{n} new', '{n} new'),
  patch: 'Patch',
  patch_changes: (n: number) => count(n, 'one change', '{n} changes'),
  more_failures: (n: number) => count(n, 'and one more', 'and {n} more'),
  rest: 'Failures, patches and deadlines',
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
  changes: 'Changes',
  risk: 'Risk',
  not_you: 'You cannot decide this gate',
  bulk: {
    select: (question: string, operation: string) => `Select ${question}, ${operation}`,
    alone: {
      kind: 'Only approval gates are decided together. Open it.',
      signature: 'Needs your passkey. Open it.',
      policy: 'Its policy keeps it out of bulk decisions. Open it.',
      comment: 'It needs a comment of its own. Open it.',
      risk: 'Its risk is above the limit for bulk approvals. Open it.',
    },
  },
  unreached: 'You get no message when a decision waits or your account is at risk.',
  reach: 'Add an address',
  guide_title: 'New here?',
  guide: [
    'An operation carries out a reviewed plan, node by node. A gate holds it until a person decides.',
    'What waits for you is below: gates, patches and held operations.',
    'Operations lists all that runs or has failed, with graphs and logs.',
  ],
  guide_close: 'Do not show this again',
}
