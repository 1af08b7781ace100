import { Link, lazyRouteComponent, useRouter } from '@tanstack/react-router'
import { useCallback, useEffect } from 'react'
import { Button } from '../forms/button.tsx'
import { Heading, Page } from '../ui/page.tsx'
import { ShapeIcon } from '../values/status.tsx'
import { t } from '../words/index.ts'

/** The code of a page could not be fetched: the network is down, or a release has replaced it. */
class CodeAway extends Error {
  readonly again: () => Promise<void>
  constructor(again: () => Promise<void>, cause: unknown) {
    super('the code of this page could not be fetched', { cause })
    this.again = again
  }
}

/** A page whose code loads on first use. On failure the router alone would reload: an empty page when offline. */
export const lazyPage: typeof lazyRouteComponent = (load, name) => {
  const page = lazyRouteComponent(
    () =>
      load().catch((cause: unknown) => {
        throw new CodeAway(async () => page.preload?.(), cause)
      }),
    name,
  )
  return page
}

/** Shown instead of a page that fails: the reason and the next step. The shell around it stays. */
export const BrokenPage = ({ error, reset }: { error: unknown; reset: () => void }) => {
  const router = useRouter()
  const away = error instanceof CodeAway ? error : undefined
  const again = useCallback(async () => {
    await away?.again()
    reset()
    void router.invalidate()
  }, [away, reset, router])
  useEffect(() => {
    if (away === undefined) return
    const hear = () => void again()
    window.addEventListener('online', hear)
    return () => window.removeEventListener('online', hear)
  }, [again, away])
  const { title, text } = away === undefined ? t.problem.broken : t.problem.code_away
  return (
    <Page>
      <Heading title={title}>{title}</Heading>
      <p className="flex max-w-text items-start gap-2" role="alert">
        <ShapeIcon shape="octagon" tone="bad" beside />
        {text}
      </p>
      <p className="flex gap-2">
        {away === undefined ? null : <Button look="main" onClick={() => void again()} word={t.retry} />}
        <Button onClick={() => location.reload()} word={t.connection.reload} />
      </p>
    </Page>
  )
}

/** A page that does not exist, or whose existence this person must not learn. */
export const NotFound = () => (
  <Page>
    <Heading title={t.problem.not_found_title}>{t.problem.not_found_title}</Heading>
    <p>{t.problem.page_not_found}</p>
    <p>
      <Link to="/inbox" search={{ for: 'me' }} className="button">
        {t.problem.home}
      </Link>
    </p>
  </Page>
)
