import { useId } from 'react'

type CardProps = {
  title: React.ReactNode
  note?: React.ReactNode
  aside?: React.ReactNode
  className?: string
  children: React.ReactNode
}

/** A section of a page under its own heading, with `aside` beside it. */
export const Card = ({ title, note, aside, className = '', children }: CardProps) => {
  const id = useId()
  return (
    <section className={`card ${className}`} aria-labelledby={id}>
      <div className={`card-head ${aside ? 'justify-between' : ''}`}>
        <h2 id={id} className="card-title">
          {title}
        </h2>
        {note ? <p className="text-table text-muted">{note}</p> : null}
        {aside}
      </div>
      {children}
    </section>
  )
}
