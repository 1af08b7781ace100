import { type Problem, problemFrom } from '../../shared/contracts/client/problem.ts'
import { problemOf, withSession } from './client.ts'

/** The time for all bytes: of a large log over a slow line, too. */
const LIMIT_MS = 900_000
/** A line that brings no byte for this long is dead. */
const SILENCE_MS = 60_000

/** Reads bytes from a path below /api. The session authorizes the request, so no link contains a token. */
export const fetchBytes = async (path: string): Promise<{ blob: Blob } | { problem: Problem }> => {
  const line = new AbortController()
  let guard: ReturnType<typeof setTimeout> | undefined
  const heard = () => {
    clearTimeout(guard)
    guard = setTimeout(() => line.abort(), SILENCE_MS)
  }
  heard()
  try {
    const answer = await withSession(new Request(`/api${path}`, { signal: line.signal }), LIMIT_MS)
    if (!answer.ok)
      return {
        problem: problemFrom(answer.status, await answer.json().catch(() => null), answer.headers.get('retry-after')),
      }
    const parts: BlobPart[] = []
    const reader = answer.body?.getReader()
    for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
      heard()
      parts.push(part.value)
    }
    return { blob: new Blob(parts, { type: answer.headers.get('content-type') ?? '' }) }
  } catch (thrown) {
    return { problem: problemOf(line.signal.aborted ? 'The server fell silent. Check the network.' : thrown) }
  } finally {
    clearTimeout(guard)
  }
}

/** Saves bytes as a file with this name through the browser. */
export const saveAs = (blob: Blob, name: string): void => {
  const url = URL.createObjectURL(blob)
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 1000)
}

/** `sha256` of bytes as 64 hex digits. */
export const sha256Of = async (blob: Blob): Promise<string> => {
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', await blob.arrayBuffer()))
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
