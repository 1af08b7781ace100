import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { lazy, Suspense, useCallback, useMemo, useState } from 'react'
import { revisionQuery } from '../api/queries.ts'
import type { Patch } from '../api/types.ts'
import { tChange } from '../i18n/change.ts'
import { tOperation } from '../i18n/operation.ts'
import { GraphStates, StatesContext } from './graph-states.ts'
import { Loading } from './page.tsx'
import { foldedGroups, type PatchedGraph, patchedGraph } from './patched-graph.ts'

const GraphCanvas = lazy(() => import('./graph-canvas.tsx').then((part) => ({ default: part.GraphCanvas })))

/** The graph as the patch would make it: what comes, goes and differs has its word; the list beside it says the same. */
export const PatchGraph = ({ patch }: { patch: Patch }) => {
  const [drawn, setDrawn] = useState(() => window.matchMedia('(min-width: 640px)').matches)
  const base = useQuery({ ...revisionQuery(patch.operation_id, patch.base_revision), enabled: drawn }).data
  const patched = useMemo(
    () => base && patchedGraph(base, patch.changes, patch.diff_graph),
    [base, patch.changes, patch.diff_graph],
  )
  if (!drawn)
    return (
      <button type="button" className="button self-start" onClick={() => setDrawn(true)}>
        {tOperation.graph.draw}
      </button>
    )
  if (patched === undefined) return <Loading rows={1} />
  if (patched.marks.size === 0) return null
  return <Drawing patched={patched} patch={patch} />
}

const Drawing = ({ patched, patch: { operation_id, patch_id } }: { patched: PatchedGraph; patch: Patch }) => {
  const navigate = useNavigate()
  const states = useMemo(() => {
    const made = new GraphStates()
    made.update(patched.graph)
    return made
  }, [patched])
  const [folded, setFolded] = useState(() => foldedGroups(patched))
  const fold = useCallback((group: string) => {
    setFolded((before) => {
      const next = new Set(before)
      if (!next.delete(group)) next.add(group)
      return next
    })
  }, [])
  return (
    <StatesContext value={states}>
      <Suspense fallback={<Loading rows={1} />}>
        <GraphCanvas
          graph={patched.graph}
          name={`patch ${patch_id}`}
          label={tChange.patch.drawing}
          folded={folded}
          fold={fold}
          selected={undefined}
          only={undefined}
          patched={patched}
          open={(node_id) => {
            if (patched.marks.get(node_id) === 'added') return
            void navigate({
              to: '/operations/$operation_id/nodes/$node_id',
              params: { operation_id, node_id },
              search: { tab: 'summary' },
            })
          }}
        />
      </Suspense>
    </StatesContext>
  )
}
