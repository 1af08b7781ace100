import { environment } from '../kit/environment.ts'
import { t } from '../words/index.ts'

const FILL = { prod: 'bg-bad', test: 'bg-wait', dev: 'bg-ok' }

/** The name of the environment, on a solid fill; production in capitals. */
export const EnvironmentBadge = () => (
  <span
    className={`inline-flex h-6 shrink-0 items-center gap-1 rounded-control px-2 text-table font-semibold text-on-accent ${FILL[environment.tier]}`}
    title={t.nav.environment(environment.name)}
  >
    {environment.name}
    {environment.tier === 'prod' ? <span>PROD</span> : null}
  </span>
)
