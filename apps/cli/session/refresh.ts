import { ProblemError, read, type Schema, type Signalbox } from '../../client/index.ts'
import { EXIT, failure } from '../errors.ts'
import type { Credentials, Entry } from './credentials.ts'
import { exchangeKey } from './machine.ts'

export const nameIn = (token: string): string =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8')).username

/** Whether the token may only set up a second factor. */
export const isEnrolling = (token: string): boolean => {
  const { cm, scope } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'))
  return cm !== 'machine' && scope !== undefined
}

export type TokenReply = Schema<'TokenReply'>

/** An access token this close to its expiry is not worth a request. */
const EARLY_MS = 10_000

/**
 * The tokens of the person signed in at `url`: refreshed before they expire and after a 401, under the lock of the
 * credentials. `signalbox` sends without a token.
 */
export const createRefresh = (url: string, credentials: Credentials, signalbox: Signalbox) => {
  const keep = (username: string, { access_token, refresh_token, expires_in }: TokenReply): Entry => {
    if (refresh_token === undefined) throw failure(EXIT.error, `${url} sent no refresh token.`, 'Is it a Signalbox?')
    const entry = { username, access_token, refresh_token, expires_at: Date.now() + expires_in * 1000 }
    credentials.save(url, entry)
    return entry
  }
  /** Keeps an API key with its first token, which also gives the name. */
  const keepKey = async (api_key: string): Promise<Entry> => {
    const { access_token, expires_in } = await exchangeKey(signalbox, api_key)
    const entry = {
      ...{ username: nameIn(access_token), access_token, refresh_token: '', api_key },
      expires_at: Date.now() + expires_in * 1000,
    }
    credentials.save(url, entry)
    return entry
  }
  const lasts = ({ expires_at }: Entry) => expires_at - EARLY_MS > Date.now()
  const kept = (): Entry => {
    const entry = credentials.get(url)
    if (entry) return entry
    throw failure(EXIT.sign_in, `You are not signed in at ${url}.`, 'Run: signalbox login NAME')
  }

  /** Another process may have refreshed while this one waited for the lock; then its result is used. */
  const renew = (used: string): Promise<string> =>
    credentials.alone(async () => {
      const entry = kept()
      if (entry.access_token !== used && lasts(entry)) return entry.access_token
      if (entry.api_key !== undefined) return (await keepKey(entry.api_key)).access_token
      const retry_key = entry.retry_key ?? crypto.randomUUID()
      credentials.save(url, { ...entry, retry_key })
      try {
        const reply = await read(
          signalbox.POST('/v1/token', {
            body: { grant_type: 'refresh_token', refresh_token: entry.refresh_token },
            headers: { 'idempotency-key': retry_key },
          }),
        )
        return keep(entry.username, reply).access_token
      } catch (error) {
        if (!(error instanceof ProblemError) || error.problem.status !== 401) throw error
        credentials.save(url, undefined)
        throw failure(EXIT.sign_in, `Your sign-in at ${url} has ended.`, `Run: signalbox login ${entry.username}`)
      }
    })

  return {
    keep,
    keepKey,
    token: async (): Promise<string> => {
      const entry = kept()
      return lasts(entry) ? entry.access_token : renew(entry.access_token)
    },
    renew: (refused: string | null | undefined): Promise<string> => renew(refused ?? ''),
  }
}
