import { useState } from 'react'
import { Button } from '../forms/button.tsx'
import { environment } from '../kit/environment.ts'
import { setDisplay, useDisplay } from '../kit/prefs.ts'
import { tDecide } from '../words/decide.ts'

/** Three lines for newcomers, except in production; can be dismissed for good. */
export const Guide = () => {
  const { guide } = useDisplay()
  const [closed, setClosed] = useState(false)
  if (!guide || closed || environment.tier === 'prod') return null
  const close = () => {
    setDisplay({ guide: false })
    setClosed(true)
  }
  return (
    <section className="card flex flex-col gap-2 p-4" aria-labelledby="guide-title">
      <h2 id="guide-title" className="font-semibold">
        {tDecide.inbox.guide_title}
      </h2>
      <ol className="flex max-w-text list-decimal flex-col gap-1 pl-5 text-muted">
        {tDecide.inbox.guide.map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ol>
      <p>
        <Button onClick={close} word={tDecide.inbox.guide_close} />
      </p>
    </section>
  )
}
