import { useBlocker } from '@tanstack/react-router'
import { Suspense, useEffect } from 'react'
import { Button } from '../forms/button.tsx'
import { sessionPhase } from '../session/token.ts'
import { lazyPart } from '../ui/lazy.ts'
import { tCommand } from '../words/operations/command.ts'

const load = () => import('../ui/overlays.tsx').then((part) => ({ default: part.DialogFrame }))
const Frame = lazyPart(load)

/** `within`: the path whose other addresses show the same form. */
type LeavingProps = { isLost: () => boolean; within?: string }

/** Asks before a page is left whose entries would be lost. A sign-out keeps them, so it does not ask. */
export const Leaving = ({ isLost, within }: LeavingProps) => {
  const asks = () => sessionPhase().name !== 'signed_out' && isLost()
  // The question must be there when the network is not, or after a release.
  useEffect(() => void load().catch(() => {}), [])
  const leaving = useBlocker({
    shouldBlockFn: ({ next }) => next.pathname !== within && asks(),
    enableBeforeUnload: asks,
    withResolver: true,
  })
  if (leaving.status !== 'blocked') return null
  return (
    <Suspense fallback={null}>
      <Frame
        title={tCommand.leaving.title}
        close={leaving.reset}
        footer={
          <>
            <Button onClick={leaving.reset} word={tCommand.leaving.stay} />
            <Button look="main danger" onClick={leaving.proceed} word={tCommand.leaving.leave} />
          </>
        }
      >
        <p>{tCommand.leaving.lost}</p>
      </Frame>
    </Suspense>
  )
}
