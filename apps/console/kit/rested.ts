import { useEffect, useState } from 'react'

const REST_MS = 500

/** The text after a pause in typing, so that not every letter sends a request. */
export const useRested = (text: string, rest_ms = REST_MS): string => {
  const [rested, setRested] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setRested(text), rest_ms)
    return () => clearTimeout(timer)
  }, [text, rest_ms])
  return rested
}
