import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { EXIT, failure } from '../errors.ts'

const WAIT_MS = 600_000
const random = () => randomBytes(32).toString('base64url')
const OPENERS: Partial<Record<NodeJS.Platform, string>> = { darwin: 'open', win32: 'explorer' }

const DONE = { sign_in: 'You are signed in.', trial: 'The test is over.' } as const

/** The values that redeem the code from the browser. */
export type BrowserCode = { code: string; code_verifier: string; redirect_uri: string }

/**
 * Signs in through a provider in the person's browser (RFC 8252). The platform redirects the browser to the provider,
 * and back to a loopback listener with a code that only this process can redeem. `show` receives the address to open.
 * For a trial the code is the name under which an administrator reads it.
 */
export const codeByBrowser = async (
  url: string,
  provider: string,
  show: (address: string) => void,
  open: (address: string) => void = (address) => {
    if (process.stderr.isTTY) openBrowser(address)
  },
  purpose: 'sign_in' | 'trial' = 'sign_in',
): Promise<BrowserCode> => {
  const code_verifier = random()
  const state = random()
  let settle: (answer: URLSearchParams) => void = () => {}
  const answered = new Promise<URLSearchParams>((resolve) => {
    settle = resolve
  })
  const server = createServer((req, res) => {
    const { pathname, searchParams } = new URL(req.url ?? '/', 'http://127.0.0.1')
    const ours = req.method === 'GET' && pathname === '/callback' && searchParams.get('state') === state
    const said = searchParams.has('code') ? DONE[purpose] : 'The sign-in was refused.'
    res.writeHead(ours ? 200 : 404, { 'content-type': 'text/plain', connection: 'close' })
    res.end(ours ? `${said} Go back to the terminal.\n` : '')
    if (ours) settle(searchParams)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const timer = setTimeout(() => settle(new URLSearchParams({ error: 'sign_in_expired' })), WAIT_MS)
  try {
    const redirect_uri = `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback`
    const code_challenge = createHash('sha256').update(code_verifier).digest('base64url')
    const query = new URLSearchParams({ redirect_uri, code_challenge, state, purpose })
    const address = `${url}/v1/sso/${encodeURIComponent(provider)}/start?${query}`
    show(address)
    open(address)
    const answer = await answered
    const code = answer.get('code')
    if (code !== null) return { code, code_verifier, redirect_uri }
    throw failure(
      EXIT.sign_in,
      `The sign-in was refused (${answer.get('error')}).`,
      `For the meaning of the code, see ${url}/docs/errors`,
    )
  } finally {
    clearTimeout(timer)
    server.close()
  }
}

/** Only a convenience: the address is shown in any case. */
export const openBrowser = (address: string, program?: string, failed: () => void = () => {}): void =>
  spawn(program || (OPENERS[process.platform] ?? 'xdg-open'), [address], { stdio: 'ignore', detached: true })
    .on('error', failed)
    .unref()
