import { tOperation } from '../words/operation.ts'
import { Choices } from './choices.tsx'

export type View = 'drawing' | 'list' | 'matrix'

/** A phone begins with the list. */
export const isNarrow = (): boolean => window.matchMedia('(max-width: 639px)').matches

/** Whether a graph is shown as a drawing, as a list with the same content, or as targets by steps where it has these. */
export const ViewChoice = (props: { view: View; choose: (view: View) => void; matrix?: boolean }) => {
  const { drawing, list, matrix } = tOperation.graph
  const choices = { drawing, ...(props.matrix ? { matrix } : {}), list } as Record<View, string>
  return <Choices label={tOperation.graph.view} choices={choices} chosen={props.view} choose={props.choose} />
}
