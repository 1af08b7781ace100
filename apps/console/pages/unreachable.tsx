import { useRouter } from '@tanstack/react-router'
import { t } from '../i18n/index.ts'
import { ShapeIcon } from '../parts/status.tsx'

/** Nobody answered when the session was to be taken up: says so and tries again, without logging anybody out. */
export const Unreachable = ({ reset }: { reset: () => void }) => {
  const router = useRouter()
  return (
    <main className="mx-auto flex max-w-dialog flex-col items-start gap-4 p-6">
      <h1 className="text-h1 font-semibold">{t.problem.offline}</h1>
      <p className="flex items-center gap-2" role="alert">
        <ShapeIcon shape="octagon" tone="bad" />
        {t.login.unreachable}
      </p>
      <button
        type="button"
        className="button main"
        onClick={() => {
          reset()
          void router.invalidate()
        }}
      >
        {t.retry}
      </button>
    </main>
  )
}
