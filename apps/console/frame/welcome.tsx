import { t } from '../words/index.ts'
import { EnvironmentBadge } from './badge.tsx'
import { Mark } from './shell.tsx'

/** The frame of the pages before a sign-in. */
export const Welcome = ({ children }: { children: React.ReactNode }) => (
  <main className="flex min-h-dvh flex-col items-center justify-center gap-6 p-4">
    <div className="flex items-center gap-3 text-title font-semibold">
      <Mark />
      {t.product}
      <EnvironmentBadge />
    </div>
    {children}
  </main>
)
