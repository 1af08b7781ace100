import { Search } from 'lucide-react'
import { Suspense, useEffect, useId, useRef, useState } from 'react'
import { t } from '../words/index.ts'

export type PaletteKeys = {
  /** Moves with a key, or opens the selected line. */
  press: (key: 'ArrowDown' | 'ArrowUp' | 'Enter') => void
}
export type PaletteProps = {
  id: string
  text: string
  /** Enter was pressed before the answers to this text arrived; the first of them is opened. */
  early: boolean
  keys: React.Ref<PaletteKeys>
  close: () => void
  /** The selected line, which the field refers to. */
  select: (option: string | undefined) => void
  wait: () => void
}

/** The list, loaded on first use. */
export type PaletteList = React.ComponentType<PaletteProps>

/** Ctrl-K or Cmd-K focuses the field. */
const useFieldKey = (field: React.RefObject<HTMLInputElement | null>): void =>
  useEffect(() => {
    const hear = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return
      event.preventDefault()
      field.current?.focus()
      field.current?.select()
    }
    window.addEventListener('keydown', hear)
    return () => window.removeEventListener('keydown', hear)
  }, [field])

/** Finds pages, actions, views, nodes, operations and resources from every page. */
export const GoTo = ({ Palette }: { Palette: PaletteList }) => {
  const [text, setText] = useState('')
  const [open, setOpen] = useState(false)
  const [option, setOption] = useState<string>()
  const [early, setEarly] = useState(false)
  const field = useRef<HTMLInputElement>(null)
  const keys = useRef<PaletteKeys>(null)
  const id = useId()
  useFieldKey(field)
  const close = () => {
    setText('')
    setOpen(false)
    setEarly(false)
    setOption(undefined)
  }
  const key = (event: React.KeyboardEvent) => {
    if (event.key === 'Escape') setOpen(false)
    else if (event.key === 'ArrowDown' && !open) setOpen(true)
    else if (event.key === 'Enter' && keys.current === null) setEarly(true)
    else if (event.key === 'ArrowDown' || event.key === 'ArrowUp' || event.key === 'Enter')
      keys.current?.press(event.key)
    else return
    event.preventDefault()
  }
  return (
    <search className="relative mr-auto ml-2 w-full max-w-80 min-w-0 max-sm:ml-0">
      <Search
        size={16}
        aria-hidden="true"
        className="pointer-events-none absolute top-1/2 left-2.5 -translate-y-1/2 text-muted"
      />
      <input
        ref={field}
        className="input !pl-8"
        role="combobox"
        aria-label={t.nav.go_to}
        aria-expanded={open && option !== undefined}
        aria-controls={`${id}-list`}
        aria-autocomplete="list"
        aria-activedescendant={open ? option : undefined}
        placeholder={t.nav.go_to_placeholder}
        value={text}
        onChange={(event) => {
          setText(event.target.value)
          setEarly(false)
          setOpen(true)
        }}
        onFocus={() => setOpen(true)}
        onBlur={() => setOpen(false)}
        onKeyDown={key}
      />
      {open ? (
        <Suspense fallback={null}>
          <Palette
            id={id}
            text={text}
            early={early}
            keys={keys}
            close={close}
            select={setOption}
            wait={() => setEarly(true)}
          />
        </Suspense>
      ) : null}
    </search>
  )
}
