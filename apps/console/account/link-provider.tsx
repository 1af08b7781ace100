import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { Button } from '../forms/button.tsx'
import { identitiesQuery } from '../queries/me.ts'
import { listProviders, type Provider, proveAt } from '../session/providers.ts'
import { Failure } from '../ui/failure.tsx'
import { tAccount } from '../words/account.ts'
import { tLogin, tSession } from '../words/frame/login.ts'
import { ProofFor, send, Told, useChanges } from './changes.tsx'

const words = tAccount.password

/** Links the person's identity at a provider, or unlinks it. A refusal by the provider returns to the sign-in page. */
export const LinkProvider = () => {
  const [providers, setProviders] = useState<Provider[]>([])
  const identities = useQuery(identitiesQuery())
  const linked = identities.data?.items.map(({ provider }) => provider)
  const { busy, said, setSaid, act } = useChanges('identities')
  useEffect(() => void listProviders().then(setProviders), [])
  if (providers.length === 0) return null
  const link = async (provider: Provider) => {
    const status = await proveAt(provider, 'link')
    if (status !== 200) setSaid(status === 403 ? tSession.link_stale : tLogin.failed)
  }
  const unlink = ({ id, title }: Provider) =>
    act(() => send('DELETE', `/api/v1/users/me/identities/${id}`), words.unlinked(title))
  return (
    <section className="card flex w-full max-w-96 flex-col gap-4 p-6">
      <h2 className="font-medium">{tSession.link_title}</h2>
      <p className="text-muted">{tSession.link_text}</p>
      {identities.isError ? <Failure error={identities.error} retry={() => void identities.refetch()} /> : null}
      {(linked ? providers : []).map((provider) =>
        linked?.includes(provider.id) ? (
          <Button key={provider.id} aria-disabled={busy} onClick={() => void unlink(provider)}>
            {words.unlink(provider.title)}
          </Button>
        ) : (
          <Button key={provider.id} onClick={() => void link(provider)} word={tSession.link(provider.title)} />
        ),
      )}
      <Told said={said} />
      <ProofFor said={said} confirmed={() => setSaid(null)} />
    </section>
  )
}
