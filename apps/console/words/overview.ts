import { plural } from './frame/plural.ts'

const count = (n: number, one: string, other: string): string => plural('en', n, { one, other })

/** Words of the overview. */
export const tOverview = {
  title: 'Overview',
  now: 'Now',
  waiting: (n: number) => count(n, 'One item waits for you', '{n} items wait for you'),
  waiting_all: (n: number) => count(n, 'One gate waits in all', '{n} gates wait in all'),
  open: (n: number) => count(n, 'One operation is open', '{n} operations are open'),
  attention: (n: number) => count(n, 'One needs attention', '{n} need attention'),
  trends: 'Trends',
  days: 'Period',
  period: { 14: '14 days', 30: '30 days', 90: '90 days' },
  measure: 'Measure',
  this: 'This period',
  before: 'Period before',
  outcomes: { succeeded: 'Succeeded', failed: 'Failed', cancelled: 'Canceled' },
  duration: 'Duration of a success',
  approval: 'Time to approve',
  spread: (p50: string, p90: string) => `${p50}, 9 of 10 within ${p90}`,
  ended: 'Ended operations by day',
  most: (n: number) => `Highest day: ${n}`,
  none: 'No operation ended in this period.',
  day: 'Day',
  as_table: 'As a table',
  calendar: 'Next 14 days',
  freeze: 'Freeze',
  window: 'Window',
  kinds: { schedule: 'Schedule', operation: 'Operation must end', gate: 'Gate must be decided' },
  free: 'Free',
  others: (n: number) => count(n, 'and one more', 'and {n} more'),
  more: 'More is planned than is shown.',
}
