import { Link, useLocation, useNavigate } from '@tanstack/react-router'
import { type ComponentProps, useEffect, useState } from 'react'
import { TextField } from '../../forms/field.tsx'
import { Welcome } from '../../frame/welcome.tsx'
import { Heading } from '../../ui/page.tsx'
import { tLogin } from '../../words/frame/login.ts'

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

/** Says that the link has been used, and leads to the sign-in. */
export const LinkUsed = ({ done, next }: { done: string; next: string }) => (
  <Welcome>
    <div className="card flex w-full max-w-96 flex-col items-start gap-4 p-6">
      <Heading title={done}>{done}</Heading>
      <p className="text-muted">{next}</p>
      <Link to="/login" className="button main">
        {tLogin.submit}
      </Link>
    </div>
  </Welcome>
)
