import { tOperation } from '../words/operation.ts'
import { Choices } from './choices.tsx'

export type View = 'drawing' | 'list'

/** A phone begins with the list. */
export const isNarrow = (): boolean => window.matchMedia('(max-width: 639px)').matches

/** Whether a graph is shown as a drawing or as a list with the same content. */
export const ViewChoice = ({ view, choose }: { view: View; choose: (view: View) => void }) => {
  const { drawing, list } = tOperation.graph
  return <Choices label={tOperation.graph.view} choices={{ drawing, list }} chosen={view} choose={choose} />
}
