import { useEffect, useState } from 'react'
import type * as en from '../../words/frame/refusal.ts'

/** The German text for a refusal, loaded with the first refusal. `undefined` until then, and for a code without one. */
export const useRefusal: typeof en.useRefusal = (code) => {
  const [said, setSaid] = useState<en.Said>()
  useEffect(() => {
    setSaid(undefined)
    void import('./codes.ts').then(
      ({ saidOf }) => setSaid(saidOf(code)),
      () => {},
    )
  }, [code])
  return said
}
