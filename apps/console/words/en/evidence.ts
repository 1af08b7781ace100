import { plural } from './plural.ts'

const count = (n: number, one: string, other: string): string => plural('en', n, { one, other })

/** Words of evidence and artifacts: what an operation can prove, and what its nodes left behind. */
export const evidence = {
  title: 'Evidence',
  sentence: (n: number) =>
    count(
      n,
      'One record, chained by its hash to the plan that was approved.',
      '{n} records, each chained by its hash to the one before and the first to the plan that was started.',
    ),
  empty: 'Nothing is recorded yet: the first record is written when the operation starts.',
  caption: 'Records of evidence, in the order of the chain',
  head: 'Head',
  begins: 'Begins at plan',
  columns: {
    seq: 'No.',
    at: 'Time',
    kind: 'Kind',
    statement: 'Statement',
    who: 'Who',
    subject: 'Subject digest',
    hash: 'Hash',
  },
  verify: 'Verify in this browser',
  verifying: 'Reading and recomputing every record …',
  holds: (n: number, hash: string) =>
    count(n, 'The one record matches', 'All {n} records match').concat(`: from the plan to the head ${hash} …`),
  broken: (seq: number) => (seq === 0 ? 'The chain does not end at its head.' : `Record ${seq} does not hold.`),
  why: {
    number: 'Its number is not the next one: a record is missing or was moved.',
    operation: 'It belongs to another operation.',
    hash: 'Its content does not have its hash: something in it was changed.',
    link: 'It does not follow the record before it.',
    head: 'The operation names another last record.',
    authority: 'What it says does not follow from the votes and rules recorded before it.',
  },
  ended: 'The chain is complete: the operation has ended.',
  not_ended: 'The chain is not complete: the operation has not ended yet.',
  counted: (decisions: number, starts: number) =>
    `${count(decisions, 'One decision', '{n} decisions')} counted again by the recorded votes and rules, ${count(starts, 'one start', '{n} starts')} behind gates.`,
  not_counted: 'An older build made this chain: it does not say by whose votes its gates were passed.',
  expected: 'Expected',
  found: 'Found',
  proves:
    'This recomputed in your browser what the server sent. It shows that no record was changed, left out or moved since. It cannot show that the server gave everybody the same chain: keep the signed file, which anybody checks without this server.',
  export: 'Download the signed file',
  exported: 'Saved. Check it anywhere with the lines below.',
  commands: 'On the command line',
  commands_note:
    'The keys are kept apart from the file that they prove. The check asks no server and names the first line that does not hold.',
}

export const artifacts = {
  title: 'Artifacts',
  caption: 'Artifacts of this operation',
  empty: 'No node has left an artifact yet.',
  empty_node: 'This node has left no artifact.',
  columns: { name: 'Name', kind: 'Kind', node: 'Node', size: 'Size', sha256: 'SHA-256', at: 'Stored', get: 'Content' },
  pending: 'Announced, not here yet',
  gone: 'No longer kept',
  elsewhere: 'Kept elsewhere',
  download: 'Download',
  download_one: (name: string) => `Download ${name}`,
  preview: 'Preview',
  preview_one: (name: string) => `Preview ${name}`,
  matches: (name: string) => `${name}: the bytes have the digest that is recorded.`,
  differs: (name: string) => `${name}: the bytes do not have the digest that is recorded. Nothing was saved.`,
  too_large: 'Previews go up to 2 MB; download it instead.',
  no_preview: 'This kind of content has no preview; download it instead.',
  source: 'Shown as source; nothing of it is run.',
  size: (bytes: number) =>
    bytes < 1000
      ? `${bytes} B`
      : bytes < 1_000_000
        ? `${(bytes / 1000).toFixed(1)} kB`
        : `${(bytes / 1_000_000).toFixed(1)} MB`,
}
