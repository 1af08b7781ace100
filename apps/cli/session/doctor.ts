import { whyOf } from '../../shared/errors.ts'
import type { Context } from '../command.ts'
import { CliError } from '../errors.ts'
import { moment } from '../terminal/output.ts'
import { versionOfClient } from '../version.ts'
import { isApiKey } from './machine.ts'

/** The result of one check; a fault includes its remedy. */
export type Finding = { check: string; ok: boolean; said: string; remedy?: string }

const PATIENCE_MS = 5000
/** Tokens are refreshed ten seconds before they expire, so a clock that is off by less does no harm. */
const MAX_SKEW_MS = 5000

/** Checks for obstacles between this client and its server, in the order in which a person would notice them. */
export const examine = async (context: Context): Promise<Finding[]> => {
  const { api, env } = context
  const address = await reachable(api.url, env)
  if (address.date === undefined) return [address.finding]
  const findings = [address.finding, clock(address.date, address.took_ms)]
  if (env.SIGNALBOX_TOKEN) {
    const key = isApiKey(env.SIGNALBOX_TOKEN)
    findings.push(
      good('credentials', `from SIGNALBOX_TOKEN, ${key ? 'the key of a machine' : 'which is never refreshed'}`),
    )
  } else {
    const kept = await signIn(context)
    findings.push(kept)
    if (!kept.ok) return findings
  }
  findings.push(await version(context))
  if (!findings.at(-1)?.ok) return findings
  return [...findings, await session(context), await stream(context)]
}

const good = (check: string, said: string): Finding => ({ check, ok: true, said })
const bad = (check: string, said: string, remedy: string): Finding => ({ check, ok: false, said, remedy })
/** A failed request with its own remedy; for a refusal the remedy is the hint. */
const refusal = (check: string, error: unknown): Finding => {
  if (!(error instanceof CliError)) throw error
  const { fault, remedy, lines } = error
  const [first = '', ...more] = lines
  return bad(
    check,
    (fault || first).replace(/\.$/, ''),
    (remedy || more.join(' ').replace(/^hint +/, '')).replace(/^Run: /, '').replace(/\.$/, ''),
  )
}

type Reached = { finding: Finding; date?: string; took_ms: number }
const reachable = async (url: string, env: NodeJS.ProcessEnv): Promise<Reached> => {
  const began = performance.now()
  try {
    const reply = await fetch(`${url}/health/ready`, { redirect: 'error', signal: AbortSignal.timeout(PATIENCE_MS) })
    const took_ms = Math.round(performance.now() - began)
    await reply.body?.cancel()
    const remedy = 'It is not ready yet, or not a Signalbox. On its machine, npm run doctor names the fault'
    const finding = reply.ok
      ? good('server', `${url} answered in ${took_ms} ms`)
      : bad('server', `${url} answered ${reply.status}`, remedy)
    return { finding, date: reply.headers.get('date') ?? '', took_ms }
  } catch (error) {
    const why = whyOf(error)
    const said = `${url} did not answer: ${why}`
    const ignored = (env.HTTPS_PROXY ?? env.https_proxy) && env.NODE_USE_ENV_PROXY !== '1'
    const remedy = ignored
      ? 'HTTPS_PROXY counts only if NODE_USE_ENV_PROXY=1 is set too (Node 24)'
      : 'Is it running? --url or SIGNALBOX_URL name another address'
    return { finding: bad('server', said, remedy), took_ms: 0 }
  }
}

/** The server reports its time in whole seconds. */
const clock = (date: string, took_ms: number): Finding => {
  const theirs = Date.parse(date)
  if (Number.isNaN(theirs)) return bad('clock', 'the server does not say its time', 'A proxy drops the header Date')
  const skew_ms = Math.max(0, Math.abs(Date.now() - took_ms / 2 - theirs - 500) - 500)
  const said = `differs by ${skew_ms < 1000 ? 'less than a second' : `${Math.round(skew_ms / 1000)} s`}`
  return skew_ms <= MAX_SKEW_MS ? good('clock', said) : bad('clock', said, 'Set the clocks by NTP')
}

/** The finding of an attempt, or its refusal. */
const tried = (check: string, act: () => Promise<Finding>): Promise<Finding> =>
  act().catch((error: unknown) => refusal(check, error))

const signIn = ({ credentials, api: { url } }: Context): Promise<Finding> =>
  tried('credentials', async () => {
    const entry = credentials.get(url)
    return entry
      ? good('credentials', `of ${entry.username} in ${credentials.file}, which only you may read`)
      : bad('credentials', 'you are not signed in', 'signalbox login NAME')
  })

const version = ({ api }: Context): Promise<Finding> =>
  tried('version', async () => {
    const ours = versionOfClient()
    const { version: theirs, degraded } = await api.get<{ version: string; degraded: string[] }>('/api/v1/me')
    if (degraded.length > 0)
      return bad('version', `${theirs}, but these parts are not ready: ${degraded.join(', ')}`, 'Commands may wait')
    return theirs === ours
      ? good('version', `${theirs} on both sides`)
      : bad('version', `the server is ${theirs}, this client ${ours}`, 'Use the client of the same release')
  })

const ofMachine = (error: unknown): undefined => {
  if (!(error instanceof CliError) || error.code !== 'person_required') throw error
}

const session = ({ api }: Context): Promise<Finding> =>
  tried('session', async () => {
    const sessions = await api
      .list<{ current: boolean; expires_at: string }>('/api/v1/sessions', {}, true)
      .catch(ofMachine)
    if (sessions === undefined) return good('session', 'a machine has none; its key signs it in')
    const ends = sessions.find(({ current }) => current)?.expires_at
    return ends
      ? good('session', `ends ${moment(ends)} at the latest`)
      : bad('session', 'it is not one of your sessions', 'signalbox login NAME')
  })

/** The server greets a stream at once; if no greeting arrives, a proxy holds it back. */
const stream = async ({ api }: Context): Promise<Finding> => {
  const end = new AbortController()
  const timer = setTimeout(() => end.abort(), PATIENCE_MS)
  const began = performance.now()
  try {
    const reply = await api.stream('/api/v1/events?topics=me', end.signal)
    if (!reply.ok)
      return bad('stream', `the server answered ${reply.status}`, 'Live updates need the right to read operations')
    const { value } = (await reply.body?.getReader().read()) ?? {}
    return value
      ? good('stream', `the first event came after ${Math.round(performance.now() - began)} ms`)
      : bad('stream', 'ended at once', 'Something between here and the server ends long answers')
  } catch (error) {
    if (!end.signal.aborted) return refusal('stream', error)
    const remedy = 'A proxy delays answers: turn off its buffering for /api/v1/events (nginx: proxy_buffering off)'
    return bad('stream', `no event came within ${PATIENCE_MS / 1000} s`, remedy)
  } finally {
    clearTimeout(timer)
    end.abort()
  }
}
