import { randomUUID } from 'node:crypto'
import http from 'node:http'
import { Agent, request } from 'undici'
import type { Endpoint } from './documents.ts'

export type Answer = {
  status: number
  headers: Record<string, string | string[] | undefined>
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into any answer
  body: any
}
/** Announces a large body in its headers, and waits for the answer before it sends any of it. */
const sendHeadersOnly = (url: string, { method, headers = {} }: Sent): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const sent = http.request(url, { method, headers, agent: false, signal: AbortSignal.timeout(PATIENCE_MS) })
    sent.on('error', reject)
    sent.on('response', async (reply) => {
      const text = Buffer.concat(await reply.toArray()).toString()
      resolve({ status: reply.statusCode ?? 0, headers: reply.headers, text, body: JSON.parse(text) })
      sent.destroy()
    })
    sent.flushHeaders()
  })

export type Sent = { method: string; headers?: Record<string, string>; body?: string | Buffer }

/** Nothing may hang: a request without an answer within this time is a failure. */
const PATIENCE_MS = 8000
const agent = new Agent({ connections: 12, pipelining: 1 })

export const send = async (url: string, { method, headers = {}, body }: Sent): Promise<Answer> => {
  if (headers['content-length'] !== undefined) return sendHeadersOnly(url, { method, headers })
  const reply = await request(url, {
    method: method as 'GET',
    headers,
    body: body ?? null,
    dispatcher: agent,
    signal: AbortSignal.timeout(PATIENCE_MS),
  })
  const text = await reply.body.text()
  const json = /json/.test(String(reply.headers['content-type'] ?? '')) && text !== ''
  return { status: reply.statusCode, headers: reply.headers, text, body: json ? JSON.parse(text) : undefined }
}

/** A request of an endpoint in parts, so that a case can break one of them. */
export type Call = {
  method: string
  path: string
  params: Record<string, string>
  query: [name: string, value: string][]
  headers: Record<string, string>
  body?: unknown
  /** Sent as it is, instead of `body`. */
  raw?: string | Buffer
}

/** The documented example of an endpoint, with the ids of existing objects. */
export const exampleCall = ({ method, path, operation }: Endpoint, ids: Record<string, string>): Call => {
  const { parameters = [], requestBody } = operation
  const examples = parameters.filter(({ example }) => example !== undefined)
  const params: Record<string, string> = {}
  let text = ''
  const [type, media] = Object.entries(requestBody?.content ?? {})[0] ?? []
  if (media) text = JSON.stringify(media.example)
  for (const parameter of examples.filter((one) => one.in === 'path')) {
    const shown = String(parameter.example)
    params[parameter.name] = ids[parameter.name] ?? shown
    // The body repeats the names in the path.
    text = text.replaceAll(JSON.stringify(shown), JSON.stringify(params[parameter.name]))
  }
  const query = examples.filter((one) => one.in === 'query')
  const body = text === '' ? undefined : withIds(JSON.parse(text), ids)
  return {
    method,
    path,
    params,
    query: query.map(({ name, example }) => [name, String(example)]),
    headers: {
      ...(parameters.some(({ name }) => name === 'idempotency-key') && { 'idempotency-key': randomUUID() }),
      ...(type && { 'content-type': type }),
    },
    ...(media && { body }),
  }
}

/** Ids that appear only in the body. */
const withIds = (body: unknown, ids: Record<string, string>): unknown =>
  typeof body === 'object' && body !== null && !Array.isArray(body) && 'node_id' in body
    ? { ...body, node_id: ids.node_id }
    : body

/** Sends a call; the path's parameters are percent-encoded unless they are already. */
export const sendCall = (base: string, { method, path, params, query, headers, body, raw }: Call): Promise<Answer> => {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = params[name] ?? 'x'
    return value.includes('%') ? value : encodeURIComponent(value)
  })
  const asked = query.map(([name, value]) => `${name}=${value.includes('%') ? value : encodeURIComponent(value)}`)
  const content = raw ?? (body === undefined ? undefined : JSON.stringify(body))
  return send(`${base}${filled}${asked.length > 0 ? `?${asked.join('&')}` : ''}`, {
    method,
    headers,
    ...(content !== undefined && { body: content }),
  })
}
