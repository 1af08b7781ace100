import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { useState } from 'react'
import type { ChainResult } from '../../shared/contracts/client/browser-chain.ts'
import { shortDigest } from '../../shared/contracts/client/digest.ts'
import type { Problem } from '../../shared/contracts/client/problem.ts'
import { problemOf } from '../api/client.ts'
import { fetchBytes, saveAs } from '../api/download.ts'
import type { EvidenceRecord } from '../api/types.ts'
import { Button } from '../forms/button.tsx'
import { shortId } from '../kit/format.ts'
import { operationQuery } from '../queries/operations.ts'
import { evidenceQuery } from '../queries/proof.ts'
import { CopyButton } from '../ui/copy.tsx'
import { ProblemText } from '../ui/failure.tsx'
import { type Column, ListTable } from '../ui/table.tsx'
import { Facts } from '../values/facts.tsx'
import { Person } from '../values/person.tsx'
import { ShapeIcon } from '../values/status.tsx'
import { TimeText } from '../values/time.tsx'
import { tDecide } from '../words/decide.ts'
import { tProof } from '../words/proof.ts'
import { verifyEvidence } from './evidence.api.ts'

/** The evidence of an operation: its chain, a check of it in this browser, and the file that anyone can verify. */
export const OperationEvidencePage = () => {
  const { operation_id } = useParams({ from: '/shell/operations/$operation_id' })
  const list = useInfiniteQuery(evidenceQuery(operation_id))
  const operation = useQuery(operationQuery(operation_id)).data
  const rows = list.data?.pages.flatMap((page) => page.records) ?? []
  const head = list.data?.pages.at(-1)?.head
  return (
    <>
      {head && head.seq > 0 ? (
        <section className="card flex flex-col gap-3 p-4" aria-labelledby="chain">
          <h2 id="chain" className="card-title">
            {tProof.evidence.title}
          </h2>
          <p>{tProof.evidence.sentence(head.seq)}</p>
          <Facts
            className="text-table"
            facts={[
              [tProof.evidence.begins, operation && <Digest key="plan" value={operation.plan_hash} />],
              [tProof.evidence.head, <Digest key="head" value={head.hash} />],
            ]}
          />
          {rows.length < head.seq ? (
            <p className="hidden print:block">{tProof.evidence.partly(rows.length, head.seq)}</p>
          ) : null}
          <Check operation_id={operation_id} print={() => void printAll(list)} />
        </section>
      ) : null}
      <ListTable
        list={list}
        empty={tProof.evidence.empty}
        caption={tProof.evidence.caption}
        columns={COLUMNS}
        rows={rows}
        keyOf="seq"
      />
    </>
  )
}

type Pages = { hasNextPage: boolean; isError: boolean; fetchNextPage: () => Promise<Pages> }
/** Reads the remaining pages, then prints once they are drawn; the list says why if one cannot be read. */
const printAll = async (list: Pages): Promise<void> => {
  let last = list
  while (last.hasNextPage && !last.isError) last = await last.fetchNextPage()
  if (!last.isError) requestAnimationFrame(() => window.print())
}

type Said = { result: ChainResult } | { problem: Problem } | { exported: true } | null

const Check = ({ operation_id, print }: { operation_id: string; print: () => void }) => {
  const [busy, setBusy] = useState<'verify' | 'export' | null>(null)
  const [said, setSaid] = useState<Said>(null)
  const run = async (what: 'verify' | 'export', work: () => Promise<Said>) => {
    if (busy !== null) return
    setBusy(what)
    setSaid(null)
    setSaid(await work().catch((thrown: unknown) => ({ problem: problemOf(thrown) })))
    setBusy(null)
  }
  const verify = () => run('verify', async () => ({ result: await verifyEvidence(operation_id) }))
  const download = () =>
    run('export', async () => {
      const path = `/v1/operations/${encodeURIComponent(operation_id)}/evidence?format=jsonl`
      const got = await fetchBytes(path)
      if ('problem' in got) return got
      saveAs(got.blob, `evidence-${operation_id}.jsonl`)
      return { exported: true }
    })
  return (
    <>
      <div className="flex flex-wrap gap-2">
        <Button look="main" aria-disabled={busy !== null} onClick={() => void verify()} word={tProof.evidence.verify} />
        <Button aria-disabled={busy !== null} onClick={() => void download()} word={tProof.evidence.export} />
        <Button onClick={() => void verify().then(print)} word={tProof.evidence.print} />
      </div>
      <div role="status" className="flex flex-col gap-2">
        {busy === 'verify' ? <p className="text-muted">{tProof.evidence.verifying}</p> : null}
        {said === null ? (
          <p className="hidden print:block">{tProof.evidence.not_verified}</p>
        ) : 'problem' in said ? (
          <ProblemText problem={said.problem} />
        ) : 'exported' in said ? (
          <p>{tProof.evidence.exported}</p>
        ) : (
          <Result result={said.result} />
        )}
      </div>
      <CommandLines operation_id={operation_id} />
    </>
  )
}

const Result = ({ result }: { result: ChainResult }) => {
  const fault = 'fault' in result ? result.fault : null
  return (
    <>
      <p className="flex gap-2 font-medium">
        <ShapeIcon shape={fault ? 'octagon' : 'check'} tone={fault ? 'bad' : 'ok'} beside />
        {'fault' in result
          ? tProof.evidence.broken(result.fault.seq)
          : tProof.evidence.holds(result.records, shortDigest(result.hash))}
      </p>
      {fault ? (
        <>
          <p>{tProof.evidence.why[fault.code]}</p>
          <Facts
            className="text-table"
            facts={[
              [tProof.evidence.expected, fault.expected, 'mono'],
              [tProof.evidence.found, fault.found || '–', 'mono'],
            ]}
          />
        </>
      ) : null}
      {'fault' in result ? null : (
        <>
          <p>
            {result.counted ? tProof.evidence.counted(result.decisions, result.starts) : tProof.evidence.not_counted}
          </p>
          <p>{result.ended ? tProof.evidence.ended : tProof.evidence.not_ended}</p>
        </>
      )}
      <p className="max-w-text text-table text-muted">{tProof.evidence.proves}</p>
    </>
  )
}

const CommandLines = ({ operation_id }: { operation_id: string }) => {
  const file = `evidence-${shortId(operation_id)}.jsonl`
  const lines = [
    `signalbox evidence keys > keys.json`,
    `signalbox evidence export ${operation_id} > ${file}`,
    `signalbox evidence verify ${file} --keys keys.json`,
  ]
  return (
    <details>
      <summary className="text-table">{tProof.evidence.commands}</summary>
      <div className="mt-2 flex flex-col gap-2">
        <p className="max-w-text text-table text-muted">{tProof.evidence.commands_note}</p>
        {lines.map((line) => (
          <div key={line} className="flex items-center gap-1">
            <code className="min-w-0 rounded-control bg-sunken px-2 py-1 wrap-anywhere">{line}</code>
            <CopyButton text={line} />
          </div>
        ))}
      </div>
    </details>
  )
}

const Digest = ({ value }: { value: string }) => (
  <span className="inline-flex max-w-full items-center gap-1">
    <code className="min-w-0 wrap-anywhere">{value}</code> <CopyButton text={value} />
  </span>
)

const Short = ({ value }: { value: string }) => (
  <span className="inline-flex items-center gap-1 whitespace-nowrap">
    <code title={value}>{shortDigest(value)} …</code> <CopyButton text={value} />
  </span>
)

/** The program that the node's agent ran, in the words of that agent. */
const Ran = ({ executed }: { executed: NonNullable<EvidenceRecord['subject']['executed']> }) => {
  const { tool, version = '', exit, agent = '', tool_sha256, content_sha256, commit } = executed
  const { program, plan, commit: named } = tProof.evidence.executed
  return (
    <span className="block text-table text-muted">
      {tProof.evidence.executed.ran(`${tool} ${version}`.trim(), agent, exit)}
      {Object.entries({ [program]: tool_sha256, [plan]: content_sha256, [named]: commit }).map(([name, value]) =>
        value === undefined ? null : (
          <span key={name} className="block">
            {name} <Short value={value} />
          </span>
        ),
      )}
    </span>
  )
}

const COLUMNS: Column<EvidenceRecord>[] = [
  { name: tProof.evidence.columns.seq, kind: 'number', cell: ({ seq }) => seq },
  {
    name: tProof.evidence.columns.at,
    // On paper the digests need the width.
    className: 'whitespace-nowrap tabular-nums print:whitespace-normal',
    cell: ({ at }) => <TimeText at={at} form="full" />,
  },
  { name: tProof.evidence.columns.kind, cell: ({ kind }) => tDecide.gate.evidence_kind(kind) },
  {
    name: tProof.evidence.columns.statement,
    kind: 'lead',
    className: 'wrap-anywhere',
    cell: ({ statement, subject: { executed } }) => (
      <>
        <span lang="en">{statement}</span>
        {executed ? <Ran executed={executed} /> : null}
      </>
    ),
  },
  { name: tProof.evidence.columns.who, cell: ({ actor }) => <Person who={actor} /> },
  { name: tProof.evidence.columns.subject, cell: ({ subject_digest }) => <Short value={subject_digest} /> },
  { name: tProof.evidence.columns.hash, cell: ({ hash }) => <Short value={hash} /> },
]
