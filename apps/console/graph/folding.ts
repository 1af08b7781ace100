import { useCallback, useState } from 'react'
import type { Graph } from '../api/types.ts'

const FOLD_ABOVE = 200

/** Every group, if the graph is too large to show whole. */
export const largeGroups = ({ nodes, groups }: Graph): ReadonlySet<string> =>
  new Set(nodes.length > FOLD_ABOVE ? groups.map(({ group_id }) => group_id) : [])

/** The folded groups, and a function that folds or unfolds one. */
export const useFolding = (begin: () => ReadonlySet<string>): [ReadonlySet<string>, (group: string) => void] => {
  const [folded, setFolded] = useState(begin)
  const fold = useCallback((group: string) => {
    setFolded((before) => {
      const next = new Set(before)
      if (!next.delete(group)) next.add(group)
      return next
    })
  }, [])
  return [folded, fold]
}
