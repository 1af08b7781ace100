import { read, type Schema, type Signalbox } from '../../client/index.ts'

/** Whether a token is a machine's API key, which SIGNALBOX_TOKEN may hold. */
export const isApiKey = (token: string): boolean => token.startsWith('sbk_')

/** Exchanges an API key for a short-lived access token. */
export const exchangeKey = (signalbox: Signalbox, client_secret: string): Promise<Schema<'MachineToken'>> =>
  read(signalbox.POST('/oauth/token', { body: { grant_type: 'client_credentials', client_secret } }))

/**
 * The tokens of an API key that is stored nowhere: one at a time, and a new one when it is refused. A failed exchange
 * is forgotten: an agent that lives for months must ask again.
 */
export const tokensOfKey = (signalbox: Signalbox, key: string) => {
  let current: Promise<string> | undefined
  const renew = (): Promise<string> => {
    const asked = exchangeKey(signalbox, key).then(({ access_token }) => access_token)
    current = asked
    asked.catch(() => {
      if (current === asked) current = undefined
    })
    return asked
  }
  return { token: () => current ?? renew(), renew }
}
