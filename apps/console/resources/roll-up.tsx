import { useQuery } from '@tanstack/react-query'
import { Fragment } from 'react'
import type { ResourceHealth } from '../api/types.ts'
import { coarse } from '../kit/format.ts'
import { healthQuery } from '../queries/resources.ts'
import { Card } from '../ui/card.tsx'
import { ResourceLink } from '../values/links.tsx'
import { Health } from '../values/status.tsx'
import { tCatalog } from '../words/catalog.ts'
import { inSentence } from '../words/frame/language.ts'
import { t } from '../words/index.ts'

type Cause = NonNullable<ResourceHealth['rollup']>['causes'][number]

/** Health including all dependencies, and the paths to the unhealthy ones. */
export const RollUp = ({ resource_id }: { resource_id: string }) => {
  const rollup = useQuery(healthQuery(resource_id)).data?.rollup
  if (rollup === undefined) return null
  return (
    <Card title={tCatalog.resource.rollup}>
      <div className="flex flex-col gap-2 p-4">
        <Health health={rollup.status} />
        {rollup.causes.length === 0 && rollup.status === 'healthy' ? <p>{tCatalog.resource.rollup_healthy}</p> : null}
        <ul className="causes flex flex-col gap-2">
          {rollup.causes.map((cause) => (
            <li key={cause.path.join(' ')}>
              <Way cause={cause} />
            </li>
          ))}
        </ul>
        {rollup.truncated ? <p className="text-wait">{tCatalog.resource.rollup_partial}</p> : null}
      </div>
    </Card>
  )
}

const Way = ({ cause: { path, status, check, age_s } }: { cause: Cause }) => (
  <>
    {path.map((step, at) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: a way has each place once, hidden ones have no name
      <Fragment key={at}>
        {at > 0 ? ' → ' : null}
        {step === null ? tCatalog.resource.hidden : <ResourceLink id={step} />}
      </Fragment>
    ))}
    <span className="text-muted">
      {' '}
      {check ? `${check.check_key} (${check.source}): ` : null}
      {tCatalog.resource.because(inSentence(t.health[status] ?? status), age_s === null ? '' : coarse(age_s * 1000))}
    </span>
  </>
)
