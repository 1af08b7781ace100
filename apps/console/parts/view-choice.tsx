import { tOperation } from '../i18n/operation.ts'

export type View = 'drawing' | 'list'

/** A phone begins with the list. */
export const isNarrow = (): boolean => window.matchMedia('(max-width: 639px)').matches

/** Whether a graph is shown as a drawing or as the list that says the same. */
export const ViewChoice = ({ view, choose }: { view: View; choose: (view: View) => void }) => (
  <fieldset className="choices" aria-label={tOperation.graph.view}>
    {(['drawing', 'list'] as const).map((choice) => (
      <button key={choice} type="button" aria-pressed={view === choice} onClick={() => choose(choice)}>
        {tOperation.graph[choice]}
      </button>
    ))}
  </fieldset>
)
