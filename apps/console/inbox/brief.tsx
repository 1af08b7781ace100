import { useQuery } from '@tanstack/react-query'
import { useTopic } from '../api/hooks.ts'
import { Brief } from '../gates/brief.tsx'
import { gateQuery } from '../queries/operations.ts'
import { Failure } from '../ui/failure.tsx'
import { tDecide } from '../words/decide.ts'

/** The brief of a gate, within its card in the inbox. */
export const GateBrief = ({ operation_id, gate_id }: { operation_id: string; gate_id: string }) => {
  useTopic(`operation:${operation_id}`)
  const { data: gate, error, refetch } = useQuery(gateQuery(operation_id, gate_id))
  if (gate) return gate.subject ? <Brief gate={gate} subject={gate.subject} /> : <p>{tDecide.gate.no_subject}</p>
  return error ? <Failure error={error} retry={() => void refetch()} /> : null
}
