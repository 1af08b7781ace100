import { MANY, type Noun } from './inbox.ts'
import { count, number } from './plural.ts'

/** Texts of the inbox that load once they are needed. Here: deadlines that are near, and pauses by drift. */
export const tExpiring = {
  drifted: 'Paused: targets have changed in the catalog',
  kinds: { operation: 'Deadline', plan: 'Plan', gate: 'Others decide', delegation: 'Delegated to you' },
  follows: {
    plan: 'it needs a new preview',
    delegation: 'you can no longer decide it',
    graceful: 'it is canceled',
    compensate: 'it is canceled and undone',
  } as Record<string, string>,
}

const oldest = (n: number, all: number | undefined) =>
  all === undefined ? number(n) : `${number(n)} of ${number(all)}`

/** Lists that the server cuts off; `all` if it counted them. */
export const tListed = {
  patches: (n: number, all: number | undefined) => `Only the oldest ${oldest(n, all)} patches are shown.`,
  failures: (n: number, all: number | undefined) => `Only the oldest ${oldest(n, all)} held operations are shown.`,
}

/** The dialog that decides gates and patches together. */
export const tBulk = {
  bar: {
    title: 'Decide together',
    selected: (n: number, noun: Noun) =>
      n === 0 ? 'None selected' : count(n, `One ${noun} selected`, `{n} ${MANY[noun]} selected`),
    most: (n: number, noun: Noun) => `${n} ${MANY[noun]} selected, the most at once`,
    all: 'Select all',
    clear: 'Clear selection',
    decide: { approve: 'Approve selected …', reject: 'Reject selected …' },
  },
  titles: {
    approve: (n: number, noun: Noun) => count(n, `Approve this ${noun}?`, `Approve these ${MANY[noun]}?`),
    reject: (n: number, noun: Noun) => count(n, `Reject this ${noun}?`, `Reject these ${MANY[noun]}?`),
  },
  buttons: {
    approve: (n: number, noun: Noun) => count(n, `Approve one ${noun}`, `Approve {n} ${MANY[noun]}`),
    reject: (n: number, noun: Noun) => count(n, `Reject one ${noun}`, `Reject {n} ${MANY[noun]}`),
  },
  rest: (n: number) => count(n, 'Send the last one', 'Send the other {n}'),
  alike: (n: number, noun: Noun) => count(n, `One ${noun}`, `{n} ${MANY[noun]} with the same change`),
  apart: 'Other changes',
  out: 'Left out',
  none: 'None of these can be decided here.',
  moved: 'It has changed since you selected it. Read it again.',
  elsewhere: (environment: string) => `It is in another environment: ${environment}.`,
  counted: 'Vote recorded',
  held: 'Not decided yet',
  progress: (done: number, all: number) => `${done} of ${all} answered.`,
}
