import { readdirSync, readFileSync } from 'node:fs'
import { CATEGORIES, describeCategory } from '../../shared/contracts/categories.ts'
import { type Category, CODES, type Entry as CodeEntry } from '../../shared/contracts/codes.ts'
import { fileOf, type StaticFile } from '../files/static.ts'

/** The documents that describe the routes; they are part of the source. */
const FOLDER = new URL('../../shared/contracts/openapi/', import.meta.url)
const METHODS = ['get', 'post', 'put', 'patch', 'delete']

/** The policy of the reference: it needs only a style sheet, no script and no internet access. */
const DOCS_POLICY = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

type Operation = {
  operationId: string
  summary: string
  description: string
  tags: string[]
  'x-permissions'?: string[]
  'x-scope'?: string
}
type Document = {
  info: { title: string; description: string }
  tags?: { name: string; description: string }[]
  paths: Record<string, Record<string, Operation>>
}
type Row = { method: string; path: string; operation: Operation }

/** Returns the file of a path, if it is one of the documents, as a client below `base` sees it. */
export type Docs = (path: string, base: string) => StaticFile | undefined

/** The documents at the root and, if there is a base path, below it. */
export const createDocs = (base: string): Docs => {
  const made = new Map([...new Set(['', base])].map((one) => [one, filesBelow(one)]))
  return (path, below) => made.get(below)?.get(path)
}

/**
 * The document of the public API at `/openapi.json`, and its reference under `/docs`: an index of every endpoint and
 * one page per category of problem, to which the `type` of a refusal leads. Built once at the start.
 */
const filesBelow = (base: string): Map<string, StaticFile> => {
  const files = new Map<string, StaticFile>()
  const add = (path: string, text: string, name = path) =>
    files.set(path, fileOf(name, Buffer.from(text.replaceAll('href="/', `href="${base}/`)), DOCS_POLICY))
  const read = (name: string, path: string) => {
    const text = readFileSync(new URL(name, FOLDER), 'utf8')
    const document = JSON.parse(text) as Document
    add(path, base ? JSON.stringify({ ...document, servers: [{ url: base }] }) : text)
    return { path, document }
  }
  const open = read('public.json', '/openapi.json')
  const internal = readdirSync(FOLDER)
    .filter((name) => name.endsWith('-internal.json'))
    .map((name) => read(name, `/docs/openapi/${name}`))
  add('/docs/docs.css', STYLE)
  add('/docs', page('API reference', reference(open.document, internal)), '/docs.html')
  add('/docs/errors', page('Refusals', errorList()), '/docs.html')
  for (const category of CATEGORIES) add(`/docs/errors/${category}`, page(category, errorPage(category)), '/docs.html')
  return files
}

const escaped = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

const page = (title: string, body: string) =>
  `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)} · Signalbox</title><link rel="stylesheet" href="/docs/docs.css"></head>
<body><nav><a href="/docs">API reference</a> <a href="/docs/errors">Refusals</a> <a href="/">Console</a></nav>
<main>${body}</main></body></html>
`

const reference = (open: Document, internal: { path: string; document: Document }[]): string => {
  const rows = rowsOf(open)
  return [
    '<h1>API reference</h1>',
    '<p>Every endpoint with what it asks of its caller. <a href="/openapi.json">openapi.json</a> describes the public API with schemas and examples: clients are generated from it. Each mutation takes an <code>Idempotency-Key</code>; each refusal is <a href="/docs/errors">problem+json</a>.</p>',
    ...(open.tags ?? []).map(({ name, description }) =>
      section(
        name,
        escaped(description),
        rows.filter(({ operation }) => operation.tags[0] === name),
      ),
    ),
    '<h1>Internal listeners</h1>',
    ...internal.map(({ path, document }) =>
      section(
        document.info.title,
        `${escaped(document.info.description)} <a href="${path}">${path.slice(path.lastIndexOf('/') + 1)}</a>`,
        rowsOf(document),
      ),
    ),
  ].join('\n')
}

const rowsOf = ({ paths }: Document): Row[] =>
  Object.entries(paths).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const operation = item[method]
      return operation ? [{ method, path, operation }] : []
    }),
  )

const section = (title: string, description: string, rows: Row[]): string =>
  `<section><h2>${escaped(title)}</h2><p>${description}</p>
<table><thead><tr><th>Method</th><th>Path</th><th>What it does</th><th>Asks for</th></tr></thead><tbody>${rows.map(row).join('')}</tbody></table></section>`

const row = ({ method, path, operation }: Row): string => {
  const { operationId, summary, description, 'x-permissions': permissions, 'x-scope': scope } = operation
  const asks = scope ?? permissions?.join(' or ') ?? ''
  const what = `<b>${escaped(summary)}.</b> ${escaped(description)}`
  return `<tr><td>${method.toUpperCase()}</td><td><code>${escaped(path)}</code><br><small>${operationId}</small></td><td>${what}</td><td>${escaped(asks)}</td></tr>`
}

const errorList = (): string =>
  `<h1>Refusals</h1><p>A refusal is <code>application/problem+json</code> (RFC 9457). Its <code>category</code> is one of these, its <code>code</code> says exactly what was wrong, its <code>hint</code> what to do; <code>retryable</code> is true when the same request may be sent again as it is, after <code>Retry-After</code>.</p>
<table><thead><tr><th>Category</th><th>Status</th><th>Meaning</th></tr></thead><tbody>${CATEGORIES.map((category) => {
    const { status, title } = describeCategory(category)
    return `<tr><td><a href="/docs/errors/${category}"><code>${category}</code></a></td><td>${status}</td><td>${escaped(title)}</td></tr>`
  }).join('')}</tbody></table>`

const errorPage = (category: Category): string => {
  const { status, title, hint } = describeCategory(category)
  const rows = Object.entries<CodeEntry>(CODES[category]).map(
    ([code, [means, remedy, ...statuses]]) =>
      `<tr id="${code}"><td><a href="#${code}"><code>${code}</code></a></td><td>${(statuses.length ? statuses : [status]).join(', ')}</td><td>${escaped(means)}</td><td>${escaped(remedy)}</td></tr>`,
  )
  return `<h1><code>${category}</code></h1><p><b>${escaped(title)}.</b> Usually HTTP ${status}; the <code>status</code> of the problem is the exact one.</p>
<p>${escaped(hint)}</p>
<table><thead><tr><th>Code</th><th>Status</th><th>Meaning</th><th>Remedy</th></tr></thead><tbody>${rows.join('')}</tbody></table>
<p>Give the <code>request_id</code> to whoever runs the platform when you report a problem: every log line of the request has it.</p>`
}

const STYLE = `:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;margin:0}nav{padding:.75rem 1.5rem;border-bottom:1px solid #8884}
nav a{margin-right:1rem}main{padding:1rem 1.5rem;max-width:80rem}table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:.35rem .75rem .35rem 0;border-bottom:1px solid #8883}tr:target{background:#fd03}code{font:0.9em ui-monospace,monospace}
@media(max-width:45rem){main{overflow-x:auto}}
`
