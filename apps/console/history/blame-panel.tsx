import '../styles/timeline.css'
import { duration } from '../kit/format.ts'
import { Card } from '../ui/card.tsx'
import { NodeLink } from '../values/links.tsx'
import { quoted } from '../words/frame/language.ts'
import { tOperation } from '../words/operation.ts'
import type { Blame, Link } from './blame.ts'

type Names = { nodes: ReadonlyMap<string, string>; question: (link: Link, piece: Link['pieces'][number]) => string }
const t = tOperation.timeline

type BlamePanelProps = {
  operation_id: string
  blame: Blame
  /** The node to explain. */
  of: string | undefined
  names: Names
}

/** The causes of the duration: the time per cause, then the path that took it, first to last. */
export const BlamePanel = ({ operation_id, blame, of, names }: BlamePanelProps) => {
  const total = blame.to - blame.from
  const links = blame.links.filter(({ pieces }) => pieces.length > 0)
  return (
    <Card
      title={of === undefined ? t.path : t.why(of)}
      note={t.path_note(duration(total), links.at(-1)?.pieces.at(-1)?.open ?? false)}
    >
      <div className="blame-strip" aria-hidden="true">
        {blame.sums.map(({ cause, ms }) => (
          <span key={cause} className={`cause ${cause}`} style={{ flexGrow: ms }} />
        ))}
      </div>
      <dl className="blame-sums" aria-label={t.per_cause}>
        {blame.sums.map(({ cause, ms }) => (
          <div key={cause}>
            <dt>
              <span className={`cause ${cause}`} aria-hidden="true" />
              {t.causes[cause]}
            </dt>
            <dd>{t.share(duration(ms), total === 0 ? 0 : Math.round((ms / total) * 100))}</dd>
          </div>
        ))}
      </dl>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard */}
      <section className="blame-path" tabIndex={0} aria-label={t.path}>
        <ol>
          {links.map((link) => (
            <li key={link.node_id}>
              <NodeLink operation_id={operation_id} node_id={link.node_id}>
                {names.nodes.get(link.node_id) ?? link.node_id}
              </NodeLink>
              <span className="tabular-nums">{duration(link.to - link.from)}</span>
              <span className="text-muted">{link.pieces.map((piece) => words(link, piece, names)).join(' · ')}</span>
            </li>
          ))}
        </ol>
      </section>
    </Card>
  )
}

const words = (link: Link, piece: Link['pieces'][number], { question }: Names): string => {
  const spent = duration(piece.to - piece.from)
  if (piece.cause === 'gate') return t.spent(`${t.causes.gate} ${quoted(question(link, piece))}`, spent)
  return t.spent(piece.cause === 'run' ? t.nth(piece.attempt ?? 1) : t.causes[piece.cause], spent)
}
