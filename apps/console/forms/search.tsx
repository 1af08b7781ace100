import { Search } from 'lucide-react'
import { useEffect, useId, useRef, useState } from 'react'

const REST_MS = 300

/**
 * `search` must keep the rest of the address as it is when it is called, which may be after other changes. `replace`:
 * the address has an earlier part of the same text, which Back must skip.
 */
type SearchFieldProps = {
  label: string
  value: string
  choices?: string[]
  search: (text: string, replace: boolean) => void
}

/** A search field that becomes part of the URL after a moment of rest, or at once with Enter. */
export const SearchField = ({ label, value, choices, search }: SearchFieldProps) => {
  const id = useId()
  const [text, setText] = useState(value)
  /** What the address holds or was last told: when it catches up, what was typed since stays. */
  const sent = useRef(value)
  /** Whether the address holds an earlier part of the text: Back then leads to before its first letter. */
  const typing = useRef(false)
  const send = () => {
    if (text.trim() === sent.current.trim()) return
    sent.current = text.trim()
    search(sent.current, typing.current)
    typing.current = true
  }
  /** Ends the text: the next letter begins another. */
  const end = () => {
    send()
    typing.current = false
  }
  useEffect(() => {
    if (value === sent.current) return
    typing.current = false
    sent.current = value
    setText(value)
  }, [value])
  // biome-ignore lint/correctness/useExhaustiveDependencies: only typing starts the clock
  useEffect(() => {
    const timer = setTimeout(send, REST_MS)
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
        onBlur={end}
        onKeyDown={(event) => {
          if (event.key === 'Enter') end()
        }}
        list={choices && `${id}-choices`}
      />
      {choices ? (
        <datalist id={`${id}-choices`}>
          {choices.map((choice) => (
            <option key={choice}>{choice}</option>
          ))}
        </datalist>
      ) : null}
    </search>
  )
}
