import { useRouter } from '@tanstack/react-router'
import { useCallback, useEffect } from 'react'
import { Button } from '../forms/button.tsx'
import { clockTime } from '../kit/format.ts'
import { useDisplay } from '../kit/prefs.ts'
import { SessionAway } from '../session/token.ts'
import { ShapeIcon } from '../values/status.tsx'
import { t } from '../words/index.ts'

const AGAIN_MS = 5000

/** Shown when the session could not be resumed: says why and retries, without signing out. */
export const Unreachable = ({ error, reset }: { error: unknown; reset: () => void }) => {
  const router = useRouter()
  const { zone } = useDisplay()
  const again = useCallback(() => {
    reset()
    void router.invalidate()
  }, [reset, router])
  const limited = error instanceof SessionAway ? error.retry_at : undefined
  // biome-ignore lint/correctness/useExhaustiveDependencies: each failure is waited for anew
  useEffect(() => {
    const timer = setTimeout(again, limited === undefined ? AGAIN_MS : Math.max(0, limited - Date.now()))
    window.addEventListener('online', again)
    return () => {
      clearTimeout(timer)
      window.removeEventListener('online', again)
    }
  }, [again, limited, error])
  return (
    <main className="mx-auto flex max-w-dialog flex-col items-start gap-4 p-6">
      <h1 className="text-h1 font-semibold">{limited === undefined ? t.problem.offline : t.problem.limited}</h1>
      <p className="flex items-center gap-2" role="alert">
        <ShapeIcon shape={limited === undefined ? 'octagon' : 'clock'} tone={limited === undefined ? 'bad' : 'idle'} />
        {limited === undefined ? t.problem.unreachable : t.problem.limited_until(clockTime(limited, zone, true))}
      </p>
      <Button look="main" onClick={again} word={t.retry} />
    </main>
  )
}
