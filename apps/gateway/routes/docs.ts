import { readdirSync, readFileSync } from 'node:fs'
import { CATEGORIES, describeCategory } from '../../shared/errors.ts'
import { fileOf, type StaticFile } from '../files/static.ts'

/** The documents that the apps' routes are described in; they are part of the source. */
const FOLDER = new URL('../../shared/contracts/openapi/', import.meta.url)
const METHODS = ['get', 'post', 'put', 'patch', 'delete']

/** The policy of the reference: it needs a style sheet and nothing else, no script and no internet. */
const DOCS_POLICY = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

type Operation = { summary?: string; description?: string; 'x-permissions'?: string[]; 'x-scope'?: string }
type PathItem = Record<string, Operation> & { servers?: { url: string }[] }
type Document = {
  info: { title: string; description?: string }
  servers?: { url: string }[]
  paths: Record<string, unknown>
}

/**
 * The API reference under `/docs`: an index of every endpoint, the OpenAPI documents, and a page for every category of
 * problem, which is where the `type` of a refusal leads. Made once at the start.
 */
export const createDocs = (): ((path: string) => StaticFile | undefined) => {
  const files = new Map<string, StaticFile>()
  const add = (path: string, text: string, name = path) => files.set(path, fileOf(name, Buffer.from(text), DOCS_POLICY))
  const names = readdirSync(FOLDER).filter((name) => name.endsWith('.json'))
  const documents = names.map((name) => {
    const text = readFileSync(new URL(name, FOLDER), 'utf8')
    add(`/docs/openapi/${name}`, text)
    return { name, document: JSON.parse(text) as Document }
  })
  add('/docs/docs.css', STYLE)
  add('/docs', page('API reference', reference(documents)), '/docs.html')
  add('/docs/errors', page('Refusals', errorList()), '/docs.html')
  for (const category of CATEGORIES) add(`/docs/errors/${category}`, page(category, errorPage(category)), '/docs.html')
  return (path) => files.get(path)
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

const reference = (documents: { name: string; document: Document }[]): string =>
  [
    '<h1>API reference</h1>',
    '<p>Every endpoint with what it asks of its caller. The OpenAPI documents hold schemas and examples. Each mutation takes an <code>Idempotency-Key</code>; each refusal is <a href="/docs/errors">problem+json</a>.</p>',
    ...documents.map(section),
  ].join('\n')

const section = ({ name, document }: { name: string; document: Document }): string => {
  const { info, paths, servers } = document
  const rows = Object.entries(paths as Record<string, PathItem>).flatMap(([path, item]) => {
    const base = (item.servers ?? servers)?.[0]?.url ?? ''
    return METHODS.flatMap((method) => {
      const operation = item[method]
      return operation
        ? [row(method, `${base}${path}`.replace(/^\/\//, '/').replace('/api/api/', '/api/'), operation)]
        : []
    })
  })
  return `<section><h2>${escaped(info.title)}</h2><p>${escaped(info.description ?? '')} <a href="/docs/openapi/${name}">${name}</a></p>
<table><thead><tr><th>Method</th><th>Path</th><th>What it does</th><th>Asks for</th></tr></thead><tbody>${rows.join('')}</tbody></table></section>`
}

const row = (method: string, path: string, operation: Operation): string => {
  const { summary, description, 'x-permissions': permissions, 'x-scope': scope } = operation
  const asks = scope ?? permissions?.join(' or ') ?? ''
  const what =
    summary && description
      ? `<b>${escaped(summary)}.</b> ${escaped(description)}`
      : escaped(summary ?? description ?? '')
  return `<tr><td>${method.toUpperCase()}</td><td><code>${escaped(path)}</code></td><td>${what}</td><td>${escaped(asks)}</td></tr>`
}

const errorList = (): string =>
  `<h1>Refusals</h1><p>A refusal is <code>application/problem+json</code> (RFC 9457). Its <code>category</code> is one of these, its <code>code</code> says exactly what was wrong, its <code>hint</code> what to do; <code>retryable</code> is true when the same request may be sent again as it is, after <code>Retry-After</code>.</p>
<table><thead><tr><th>Category</th><th>Status</th><th>Meaning</th></tr></thead><tbody>${CATEGORIES.map((category) => {
    const { status, title } = describeCategory(category)
    return `<tr><td><a href="/docs/errors/${category}"><code>${category}</code></a></td><td>${status}</td><td>${escaped(title)}</td></tr>`
  }).join('')}</tbody></table>`

const errorPage = (category: (typeof CATEGORIES)[number]): string => {
  const { status, title, hint } = describeCategory(category)
  return `<h1><code>${category}</code></h1><p><b>${escaped(title)}.</b> Usually HTTP ${status}; the <code>status</code> of the problem is the exact one.</p>
<p>${escaped(hint)}</p><p>Give the <code>request_id</code> to whoever runs the platform when you report it: every log line of the request has it.</p>`
}

const STYLE = `:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;margin:0}nav{padding:.75rem 1.5rem;border-bottom:1px solid #8884}
nav a{margin-right:1rem}main{padding:1rem 1.5rem;max-width:80rem}table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:.35rem .75rem .35rem 0;border-bottom:1px solid #8883}code{font:0.9em ui-monospace,monospace}
@media(max-width:45rem){main{overflow-x:auto}}
`
