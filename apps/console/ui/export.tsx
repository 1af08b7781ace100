import { useState } from 'react'
import type { Problem } from '../../shared/contracts/client/problem.ts'
import { problemOf } from '../api/client.ts'
import { saveAs } from '../api/download.ts'
import { Button } from '../forms/button.tsx'
import { tExport } from '../words/views.ts'
import { ProblemText } from './failure.tsx'

const PAGE = 500
const MAX_ROWS = 10_000

/** The columns of a file by name, with the value of each in a row. */
export type Fields<Row> = Readonly<Record<string, (row: Row) => unknown>>
type ReadPage<Row> = (page: {
  page_size: number
  page_token?: string
}) => Promise<{ items: Row[]; next_page_token: string | null; more?: boolean }>

type ExportProps<Row> = {
  /** The name of the file, without its ending. */
  name: string
  read: ReadPage<Row>
  fields: Fields<Row>
  /** Also offers the rows as the server sends them. */
  lines?: boolean
  /** Says that more rows exist than a browser should hold. */
  cut?: (rows: number) => string
  /** The rows of the list are not those that it was asked for last. */
  off?: boolean
}

/** Saves all rows of a list as a file, up to the number that a browser should hold. */
export const Export = <Row,>({
  name,
  read,
  fields,
  lines = false,
  cut = tExport.cut,
  off = false,
}: ExportProps<Row>) => {
  const [said, setSaid] = useState<{ words: string } | { problem: Problem }>()
  const [busy, setBusy] = useState(false)
  const save = async (kind: 'csv' | 'jsonl') => {
    if (busy || off) return
    setBusy(true)
    try {
      const { rows, more } = await allRows(read, (count) => setSaid({ words: tExport.exporting(count) }))
      const text = kind === 'csv' ? csvOf(fields, rows) : rows.map((row) => `${JSON.stringify(row)}\n`).join('')
      saveAs(new Blob([text], { type: kind === 'csv' ? 'text/csv' : 'application/jsonl' }), `${name}.${kind}`)
      setSaid({ words: more ? cut(rows.length) : tExport.exported(rows.length) })
    } catch (error) {
      setSaid({ problem: problemOf(error) })
    }
    setBusy(false)
  }
  return (
    <div className="ml-auto flex flex-wrap items-center gap-3">
      <Button aria-disabled={busy || off} onClick={() => void save('csv')} word={tExport.csv} />
      {lines ? <Button aria-disabled={busy || off} onClick={() => void save('jsonl')} word={tExport.jsonl} /> : null}
      <div role="status" className="empty:-ml-3">
        {said === undefined ? null : 'problem' in said ? <ProblemText problem={said.problem} /> : <p>{said.words}</p>}
      </div>
    </div>
  )
}

/** All rows of a list up to the limit; `more` if others exist, or the list itself ends before its last row. `tell` receives the number so far. */
const allRows = async <Row,>(read: ReadPage<Row>, tell: (rows: number) => void) => {
  const rows: Row[] = []
  for (let page_token: string | null = ''; page_token !== null; ) {
    if (rows.length >= MAX_ROWS) return { rows, more: true }
    const page = await read({ page_size: PAGE, ...(page_token && { page_token }) })
    rows.push(...page.items)
    tell(rows.length)
    page_token = page.next_page_token
    if (page.more) return { rows, more: true }
  }
  return { rows, more: false }
}

/** RFC 4180, marked as UTF-8. A cell that a spreadsheet would treat as a formula is prefixed with an apostrophe. */
export const csvOf = <Row,>(fields: Fields<Row>, rows: readonly Row[]): string => {
  const cell = (value: unknown): string => {
    const text = Array.isArray(value) ? value.join(' ') : String(value ?? '')
    const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
  }
  const lines = [Object.keys(fields), ...rows.map((row) => Object.values(fields).map((of) => of(row)))]
  return ['\uFEFF', ...lines.map((cells) => `${cells.map(cell).join(',')}\r\n`)].join('')
}
