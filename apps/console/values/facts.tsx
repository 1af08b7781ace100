import { Fragment } from 'react'

export type Fact = readonly [name: React.ReactNode, value: React.ReactNode, look?: string]

/** Names beside their values; a name without a value is left out. */
export const Facts = ({ facts, className = '' }: { facts: readonly Fact[]; className?: string }) => (
  <dl className={`facts ${className}`}>
    {facts.map(([name, value, look], at) =>
      value === null || value === undefined || value === '' || value === false ? null : (
        // biome-ignore lint/suspicious/noArrayIndexKey: the facts of an object keep their order
        <Fragment key={at}>
          <dt>{name}</dt>
          <dd className={look}>{value}</dd>
        </Fragment>
      ),
    )}
  </dl>
)
