import { count, number } from '../frame/plural.ts'

/** Texts for evidence and artifacts: the records that prove an operation, and the files of its nodes. */
export const evidence = {
  title: 'Evidence',
  sentence: (n: number) =>
    count(
      n,
      'One record, linked by hash to the approved plan.',
      '{n} records, each linked by hash to the one before. The first is linked to the started plan.',
    ),
  empty: 'No records yet. The first one is written when the operation starts.',
  caption: 'Evidence records in chain order',
  head: 'Head',
  begins: 'Starts at plan',
  columns: {
    seq: 'No.',
    at: 'Time',
    kind: 'Kind',
    statement: 'Statement',
    who: 'Who',
    subject: 'Subject digest',
    hash: 'Hash',
  },
  executed: {
    ran: (program: string, agent: string, exit: number | undefined) =>
      `${agent === '' ? 'An agent' : agent} ran ${program}${exit === undefined ? '' : `, exit code ${exit}`}`,
    program: 'Program',
    plan: 'Saved plan',
    commit: 'Commit',
  },
  print: 'Print',
  partly: (n: number, all: number) => `Records 1 to ${number(n)} of ${number(all)}. “Print” on this page prints all.`,
  verify: 'Verify in this browser',
  not_verified: 'Not verified in this browser before printing.',
  verifying: 'Reading and recomputing every record …',
  holds: (n: number, hash: string) =>
    count(n, 'The one record matches', 'All {n} records match').concat(`: from the plan to the head ${hash} …`),
  broken: (seq: number) => (seq === 0 ? 'The chain does not end at its head.' : `Record ${seq} fails verification.`),
  why: {
    number: 'Its number is out of sequence: a record is missing or was moved.',
    operation: 'It belongs to another operation.',
    hash: 'Its content does not match its hash: it was changed.',
    link: 'It is not linked to the record before it.',
    head: 'The operation names another record as the last one.',
    authority: 'It contradicts the votes and rules recorded before it.',
  },
  ended: 'The chain is complete: the operation has ended.',
  not_ended: 'The chain is not complete: the operation has not ended yet.',
  counted: (decisions: number, starts: number) =>
    `${count(decisions, 'One decision', '{n} decisions')} recounted from the recorded votes and rules, ${count(starts, 'one start', '{n} starts')} behind gates.`,
  not_counted: 'An older build made this chain. It does not record whose votes passed its gates.',
  expected: 'Expected',
  found: 'Found',
  proves:
    'Your browser recomputed the chain that the server sent. No record was changed, removed or moved since. This does not prove that the server gives everyone the same chain: keep the signed file, which anyone can verify without this server.',
  export: 'Download the signed file',
  exported: 'Saved. Verify it anywhere with the commands below.',
  commands: 'On the command line',
  commands_note: [
    'Ask the operators of this installation for the client signalbox: a tarball or an executable.',
    'Keep the keys separate from the file that they verify.',
    'The check runs offline and names the first line that fails verification.',
  ].join(' '),
}

export const artifacts = {
  title: 'Artifacts',
  caption: 'Artifacts of this operation',
  empty: 'No artifacts yet.',
  empty_node: 'This node has no artifacts.',
  columns: { name: 'Name', kind: 'Kind', node: 'Node', size: 'Size', sha256: 'SHA-256', at: 'Stored', get: 'Content' },
  pending: 'Announced, not uploaded yet',
  gone: 'Past its retention period',
  elsewhere: 'Stored elsewhere',
  download_one: (name: string) => `Download ${name}`,
  preview: 'Preview',
  preview_one: (name: string) => `Preview ${name}`,
  matches: (name: string) => `${name}: the content matches the recorded digest.`,
  differs: (name: string) => `${name}: the content does not match the recorded digest. It was not saved.`,
  too_large: 'Over 2 MB, too large to preview. Download it instead.',
  no_preview: 'This type of content has no preview. Download it instead.',
  source: 'Shown as source; no code in it runs.',
}
