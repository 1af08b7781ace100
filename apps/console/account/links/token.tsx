import { useLocation, useNavigate } from '@tanstack/react-router'
import { type ComponentProps, useEffect, useState } from 'react'
import { TextField } from '../../forms/field.tsx'

/** A field for a part of a link, pasted by hand. */
export const CodeField = (props: ComponentProps<typeof TextField>) => (
  <TextField {...props} className="input mono" autoComplete="off" spellCheck={false} />
)

/**
 * Takes the token behind `#` of a one-time link. It must not stay in the address bar or the history. Returns whether the
 * link contained one; otherwise the person pastes it.
 */
export const useLinkToken = (
  page: '/enrol' | '/sign-out',
  type: (field: 'token', value: string) => void,
  setProblem: (problem: null) => void,
): boolean => {
  const { hash } = useLocation()
  const navigate = useNavigate()
  const [linked, setLinked] = useState(hash !== '')
  useEffect(() => {
    if (hash === '') return
    type('token', hash)
    setLinked(true)
    setProblem(null)
    void navigate({ to: page, hash: '', replace: true })
  }, [hash, navigate, page, setProblem, type])
  return linked
}
