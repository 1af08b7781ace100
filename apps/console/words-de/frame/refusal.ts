import { useEffect, useState } from 'react'
import type * as en from '../../words/frame/refusal.ts'

/** German words of a refusal, read with the first one. Undefined until then, and for a code that has none. */
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
