/** Texts for the list below the go-to field. */
export const palette = {
  none: 'No pages, actions, views, operations, plans or resources match.',
  no_line: 'On a node’s page, type a line number of its log.',
  hint: '> actions · # nodes · : line of a log',
  page: 'page',
  action: 'action',
  recent: 'opened before',
  plan: 'plan',
  intent: 'intent',
  view_of: (list: string) => `view of ${list}`,
  line: (n: number) => `Line ${n} of this log`,
}
