import { postHeld } from './sign-in.ts'
import { AT_PROVIDER, accessToken } from './token.ts'

export type Provider = { id: string; title: string }
const LIMIT_MS = 10_000

/** The identity providers of this installation, and whether passwords are for emergencies; none if the server does not answer. */
export const waysIn = async (): Promise<{ providers: Provider[]; emergency: boolean }> => {
  const ways = await read<{ items: Provider[]; passwords: string }>('/v1/providers')
  return { providers: ways?.items ?? [], emergency: ways?.passwords === 'break_glass' }
}

export const listProviders = async (): Promise<Provider[]> => (await waysIn()).providers

/** The provider through which this session began. Such a session has no password for confirmations. */
export const sessionProvider = async (): Promise<Provider | undefined> => {
  type Own = { current: boolean; metadata: { provider?: string } | null }
  const [providers, sessions] = await Promise.all([listProviders(), read<{ items: Own[] }>('/api/v1/sessions')])
  const id = sessions?.items.find(({ current }) => current)?.metadata?.provider
  return providers.find((provider) => provider.id === id)
}

/** Who returns from the provider takes the session of that sign-in, and no older one of another tab. */
export const awayAtProvider = (): void => sessionStorage.setItem(AT_PROVIDER, '1')

/** The address behind a provider's button. */
export const signInAddress = ({ id }: Provider, next: string): string =>
  `/v1/sso/${id}/start?${new URLSearchParams({ return_to: next })}`

/** The address of a test sign-in, which leads back to the page of the providers. */
export const trialAddress = (id: string): string => `/v1/sso/${id}/start?purpose=trial`

/** Redirects to the provider and back here, to confirm the person or link the identity. Returns a refusal's status. */
export const proveAt = async ({ id }: Provider, purpose: 'reauth' | 'link'): Promise<number | null> => {
  const return_to = `${location.pathname}${location.search}`
  const answer = await postHeld(`/v1/sso/${id}/start`, { purpose, return_to })
  if (answer?.ok) {
    const { location: there } = (await answer.json()) as { location: string }
    awayAtProvider()
    location.assign(there)
  }
  return answer?.status ?? null
}

const read = async <T>(path: string): Promise<T | undefined> => {
  const token = accessToken()
  try {
    const answer = await fetch(path, {
      signal: AbortSignal.timeout(LIMIT_MS),
      ...(token !== null && { headers: { authorization: `Bearer ${token}` } }),
    })
    return answer.ok ? ((await answer.json()) as T) : undefined
  } catch {
    return undefined
  }
}
