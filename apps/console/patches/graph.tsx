import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Suspense, useMemo, useState } from 'react'
import type { Patch } from '../api/types.ts'
import { Button } from '../forms/button.tsx'
import { isNarrow } from '../forms/view.tsx'
import { useFolding } from '../graph/folding.ts'
import { gateBox } from '../graph/gates.ts'
import { foldedGroups, type PatchedGraph, patchedGraph } from '../graph/patched.ts'
import { StatesContext, useLiveStates } from '../graph/states.ts'
import { revisionQuery } from '../queries/operations.ts'
import { Failure } from '../ui/failure.tsx'
import { lazyPart } from '../ui/lazy.ts'
import { Loading } from '../ui/page.tsx'
import { tChange } from '../words/change.ts'
import { tOperation } from '../words/operation.ts'

const GraphCanvas = lazyPart(() => import('../graph/canvas.tsx').then((part) => ({ default: part.GraphCanvas })))

type Props = { operation_id: string; base_revision: number; changes: readonly unknown[]; diff: Patch['diff_graph'] }

/** The resulting graph: added, removed and changed nodes have a label; the list beside it has the same content. */
export const PatchGraph = ({ operation_id, base_revision, changes, diff }: Props) => {
  const [drawn, setDrawn] = useState(() => !isNarrow())
  const read = useQuery({ ...revisionQuery(operation_id, base_revision), enabled: drawn })
  const base = read.data
  const patched = useMemo(() => base && patchedGraph(base, changes, diff), [base, changes, diff])
  if (!drawn) return <Button look="self-start" onClick={() => setDrawn(true)} word={tOperation.graph.draw} />
  if (base === undefined && read.isError) return <Failure error={read.error} retry={() => void read.refetch()} />
  if (patched === undefined) return <Loading rows={1} />
  if (patched.marks.size === 0) return null
  const name = `patch ${operation_id} ${JSON.stringify(changes)}`
  return <Drawing key={name} name={name} patched={patched} operation_id={operation_id} />
}

const Drawing = ({ name, patched, operation_id }: { name: string; patched: PatchedGraph; operation_id: string }) => {
  const navigate = useNavigate()
  const states = useLiveStates(patched.graph)
  const [folded, fold] = useFolding(() => foldedGroups(patched))
  return (
    <StatesContext value={states}>
      <Suspense fallback={<Loading rows={1} />}>
        <GraphCanvas
          graph={patched.graph}
          name={name}
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
          openGate={(gate_id) => {
            if (patched.marks.get(gateBox(gate_id)) === 'added') return
            void navigate({ to: '/operations/$operation_id/gates/$gate_id', params: { operation_id, gate_id } })
          }}
        />
      </Suspense>
    </StatesContext>
  )
}
