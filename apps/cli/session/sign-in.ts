import { ProblemError, type Repeats, read, type Signalbox } from '../../client/index.ts'
import { CliError, EXIT, failure, usageError } from '../errors.ts'
import { told } from './answers.ts'
import type { BrowserCode } from './browser.ts'
import type { Credentials } from './credentials.ts'
import { type DeviceCodes, tokensByDevice } from './device.ts'
import { type createRefresh, isEnrolling, nameIn, type TokenReply } from './refresh.ts'

/** A sign-in waits longer for its turn than other requests do. */
const LOGIN_REPEATS = { times: 30, longest_wait_ms: 30_000 }

type SignIn = {
  url: string
  credentials: Credentials
  refresh: ReturnType<typeof createRefresh>
  /** A client that sends without a token. */
  connect: (repeats: Partial<Repeats>) => Signalbox
  say: (line: string) => void
  /** Ends the session at the server. */
  end: () => Promise<unknown>
}

/** The ways to sign in at `url`, and out. */
export const createSignIn = ({ url, credentials, refresh, connect, say, end }: SignIn) => {
  /** The fields by which a sign-in from here is recognized, now and the next time. */
  const deviceOf = (username?: string) => {
    const device_token = credentials.device(url, username)
    return { remember_device: true, ...(device_token !== undefined && { device_token }) }
  }

  const enter = (username: string, tokens: TokenReply): Promise<string> =>
    credentials.alone(async () => {
      refresh.keep(username, tokens)
      if (isEnrolling(tokens.access_token))
        say(
          `Your role needs a second factor, so this sign-in only sets one up. Run: signalbox totp set, or open ${url}/settings/passkeys`,
        )
      if (tokens.device_token !== undefined) credentials.saveDevice(url, username, tokens.device_token)
      return username
    })

  return {
    /** Signs in; retries a busy server after the delay that it names. */
    login: async (username: string, password: string, askCode: AskCode = noCode): Promise<void> => {
      const device = deviceOf(username)
      const signIn = (body: object): Promise<TokenReply> =>
        read(connect(LOGIN_REPEATS).POST('/v1/token', { body: { ...body, ...device } }))
      const tokens = await told(url, () =>
        signIn({ grant_type: 'password', username, password }).catch((error: unknown) =>
          byCode(error, askCode, (more) => signIn({ grant_type: 'second_factor', ...more })),
        ),
      )
      await enter(username, tokens)
    },
    /** Signs in with the code that a browser delivered; returns the name of the user. */
    redeem: async (grant: BrowserCode): Promise<string> => {
      const body = { grant_type: 'authorization_code' as const, ...grant, ...deviceOf() }
      const tokens: TokenReply = await told(url, () => read(connect({ times: 0 }).POST('/v1/token', { body })))
      return enter(nameIn(tokens.access_token), tokens)
    },
    /** Signs in by an approval in a browser on another device; returns the name of the user. */
    loginDevice: async (show: (codes: DeviceCodes) => void): Promise<string> => {
      const tokens = await told(url, () => tokensByDevice(connect({ times: 0 }), show, deviceOf()))
      return enter(nameIn(tokens.access_token), tokens)
    },
    /** Keeps the API key of a machine; returns the machine's name. */
    loginMachine: (key: string): Promise<string> =>
      told(url, () => credentials.alone(async () => (await refresh.keepKey(key)).username)),
    /** Gets a new access token after the session gained rights. */
    renew: async (): Promise<void> => void (await refresh.renew(await refresh.token())),
    /** Ends the session; the credentials kept here are removed in any case. */
    logout: async (): Promise<void> => {
      try {
        // A machine's session is its key, which remains valid.
        if (credentials.get(url)?.api_key === undefined) await end()
      } catch (error) {
        // Without the credentials a repeat of the request could not be authorized.
        if (!(error instanceof CliError) || !error.passing) throw error
        const fault = `Signed out here, but ${error.fault || error.detail}`
        throw failure(error.exit, fault, `The session may remain: end it at ${url}/settings/sessions.`)
      } finally {
        await credentials.alone(async () => credentials.save(url, undefined))
      }
    },
  }
}

/** Asks the person for a code of the authenticator app; `again` after a refused code. */
export type AskCode = (again: boolean) => Promise<string>
const noCode: AskCode = async () => {
  throw usageError('The sign-in needs a code of your authenticator app.', 'Sign in at a terminal: signalbox login NAME')
}

/** Completes a sign-in that needs a code; the server limits the number of wrong codes. */
const byCode = async (
  refusal: unknown,
  askCode: AskCode,
  signIn: (more: { factor_token: string; totp: string }) => Promise<TokenReply>,
): Promise<TokenReply> => {
  if (!(refusal instanceof ProblemError) || refusal.problem.code !== 'second_factor_required') throw refusal
  const { factor_token, factors } = refusal.problem
  if (!Array.isArray(factors) || !factors.includes('totp'))
    throw failure(
      EXIT.sign_in,
      'The sign-in needs your passkey, which a terminal cannot use.',
      'Sign in at the console, or set up an authenticator app there.',
    )
  for (let again = false; ; again = true) {
    try {
      return await signIn({ factor_token: String(factor_token), totp: (await askCode(again)).replaceAll(/\s/g, '') })
    } catch (error) {
      const mistyped =
        error instanceof ProblemError && ['totp_invalid', 'schema_violation'].includes(error.problem.code)
      if (!mistyped) throw error
    }
  }
}
