import { useEffect, useState } from 'react'
import { listProviders, type Provider, proveAt } from '../session/providers.ts'
import { tLogin, tSession } from '../words/frame/login.ts'

/** Links one's identity at a provider; a linked one stays linked. A refusal comes back to the sign-in page. */
export const LinkProvider = () => {
  const [providers, setProviders] = useState<Provider[]>([])
  const [error, setError] = useState<string | null>(null)
  useEffect(() => void listProviders().then(setProviders), [])
  if (providers.length === 0) return null
  const link = async (provider: Provider) => {
    const status = await proveAt(provider, 'link')
    if (status !== 200) setError(status === 403 ? tSession.link_stale : tLogin.failed)
  }
  return (
    <section className="card flex w-full max-w-96 flex-col gap-4 p-6">
      <h2 className="font-medium">{tSession.link_title}</h2>
      <p className="text-muted">{tSession.link_text}</p>
      {providers.map((provider) => (
        <button key={provider.id} type="button" className="button" onClick={() => void link(provider)}>
          {tSession.link(provider.title)}
        </button>
      ))}
      <p role="alert">{error}</p>
    </section>
  )
}
