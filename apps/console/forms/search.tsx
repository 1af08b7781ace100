import { Search } from 'lucide-react'
import { useEffect, useId, useState } from 'react'

const REST_MS = 300

type SearchFieldProps = { label: string; value: string; search: (text: string) => void }

/** A search field whose text goes into the URL after a short pause, or at once on Enter. */
export const SearchField = ({ label, value, search }: SearchFieldProps) => {
  const id = useId()
  const [text, setText] = useState(value)
  useEffect(() => setText(value), [value])
  // biome-ignore lint/correctness/useExhaustiveDependencies: only typing starts the clock
  useEffect(() => {
    if (text === value) return
    const timer = setTimeout(() => search(text.trim()), REST_MS)
    return () => clearTimeout(timer)
  }, [text])
  return (
    <search className="relative w-full max-w-96">
      <Search
        size={16}
        aria-hidden="true"
        className="pointer-events-none absolute top-1/2 left-2.5 -translate-y-1/2 text-muted"
      />
      <label htmlFor={id} className="sr-only">
        {label}
      </label>
      <input
        id={id}
        type="search"
        className="input !pl-8"
        placeholder={label}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => event.key === 'Enter' && search(text.trim())}
      />
    </search>
  )
}
