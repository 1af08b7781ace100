import { coarse } from '../kit/format.ts'
import { tCatalog } from '../words/catalog.ts'

const BEHIND_MS = 10_000

type Reply = { as_of: { lag_ms: number } }

/** Says how far the catalog is behind in these replies, if a person would notice. */
export const Behind = ({ replies }: { replies: (Reply | undefined)[] }) => {
  const lag_ms = Math.max(...replies.map((reply) => reply?.as_of.lag_ms ?? 0))
  return lag_ms > BEHIND_MS ? <p className="text-wait">{tCatalog.resources.behind(coarse(lag_ms))}</p> : null
}
