import { useEffect, useState } from 'react'

const REST_MS = 500

/** The text, once it has rested: nobody asks letter by letter. */
export const useRested = (text: string): string => {
  const [rested, setRested] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setRested(text), REST_MS)
    return () => clearTimeout(timer)
  }, [text])
  return rested
}
