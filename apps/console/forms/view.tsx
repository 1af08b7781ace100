import { tOperation } from '../words/operation.ts'
import { Choices } from './choices.tsx'

export type View = 'drawing' | 'list' | 'matrix'

/** Whether the screen is narrow, such as a phone's, where the list is the first view. */
export const isNarrow = (): boolean => window.matchMedia('(max-width: 639px)').matches

/** Chooses how a graph is shown: as a drawing, as a list with the same content, or as a matrix of targets by steps. */
export const ViewChoice = (props: { view: View; choose: (view: View) => void; matrix?: boolean }) => {
  const { drawing, list, matrix } = tOperation.graph
  const choices = { drawing, ...(props.matrix ? { matrix } : {}), list } as Record<View, string>
  return <Choices label={tOperation.graph.view} choices={choices} chosen={props.view} choose={props.choose} />
}
