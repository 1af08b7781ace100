import { fieldsOf, listOf } from '../items.ts'
import { type Index, idOf, type Row } from './rows.ts'

type Ends = { A: Row[]; B: Row[] }

/** The destinations of a file's cables: from port to port, and through patch panels to the real ends. */
export const cablesOf = (index: Index) => {
  const ends = endsOf(index)
  const sideOf = new Map<string, { cable: string; side: 'A' | 'B' }>()
  for (const [cable, { A, B }] of ends) {
    for (const row of A) sideOf.set(idOf(row), { cable, side: 'A' })
    for (const row of B) sideOf.set(idOf(row), { cable, side: 'B' })
  }
  const fronts = Map.groupBy(
    index.rows.filter(({ model }) => model === 'dcim.frontport'),
    ({ fields }) => String(fields.rear_port),
  )
  /** The ports at the other end of this port's cable. */
  const farEnds = (row: Row): Row[] => {
    const at = sideOf.get(idOf(row))
    return at ? (ends.get(at.cable)?.[at.side === 'A' ? 'B' : 'A'] ?? []) : []
  }
  const frontsOf = (rear: Row, position: number | undefined): Row[] => {
    const all = fronts.get(rear.pk) ?? []
    if (position === undefined) return all
    return all.filter(({ fields }) => Number(fields.rear_port_position ?? 1) === position)
  }
  /**
   * The ends that a port reaches. A path leads from a front port to its rear port. On the far side it leads from the
   * rear port to the front port of the same position. A device's cable on a rear port reaches all of its strands. Where
   * a path stops, the last port is its end.
   */
  const realEnds = (from: Row): Row[] => {
    const found = new Map<string, Row>()
    const walk = (port: Row, positions: readonly number[], seen: ReadonlySet<string>) => {
      for (const far of farEnds(port)) {
        const id = idOf(far)
        if (seen.has(id)) continue
        const next = throughPanel(far, positions)
        const on = next.filter(({ row }) => farEnds(row).length > 0)
        if (on.length === 0) found.set(id, far)
        for (const { row, positions: left } of on) walk(row, left, new Set([...seen, id, idOf(row)]))
      }
    }
    const throughPanel = (port: Row, positions: readonly number[]): { row: Row; positions: number[] }[] => {
      if (port.model === 'dcim.frontport') {
        const rear = index.byId.get(`dcim.rearport/${String(port.fields.rear_port)}`)
        return rear ? [{ row: rear, positions: [...positions, Number(port.fields.rear_port_position ?? 1)] }] : []
      }
      if (port.model !== 'dcim.rearport') return []
      return frontsOf(port, positions.at(-1)).map((row) => ({ row, positions: positions.slice(0, -1) }))
    }
    walk(from, [], new Set([idOf(from)]))
    return [...found.values()].filter((row) => idOf(row) !== idOf(from))
  }
  /** The ids at the ends of each cable, which its own record names. */
  const endIds = (cable: string) => {
    const { A = [], B = [] } = ends.get(cable) ?? {}
    return { a: A.map(idOf), b: B.map(idOf) }
  }
  return { farEnds, realEnds, endIds }
}
export type Cables = ReturnType<typeof cablesOf>

/** Paths pass through panel ports; any other port is an end. */
export const isPanelPort = ({ model }: Row): boolean => model === 'dcim.frontport' || model === 'dcim.rearport'

/** The ends of each cable, in the forms that the versions of NetBox use. */
const endsOf = ({ rows, byId, kindOf }: Index): Map<string, Ends> => {
  const ends = new Map<string, Ends>()
  const put = (cable: unknown, side: unknown, row: Row | undefined) => {
    if (cable === null || cable === undefined || row === undefined || (side !== 'A' && side !== 'B')) return
    const of = ends.get(String(cable)) ?? { A: [], B: [] }
    if (![...of.A, ...of.B].includes(row)) of[side].push(row)
    ends.set(String(cable), of)
  }
  for (const row of rows) {
    const { model, pk, fields } = row
    if (model === 'dcim.cabletermination')
      put(
        fields.cable,
        fields.cable_end,
        byId.get(`${kindOf(fields.termination_type)}/${String(fields.termination_id)}`),
      )
    else if (model === 'dcim.cable')
      for (const side of ['a', 'b'] as const) {
        const list = listOf(fields[`${side}_terminations`]).map(fieldsOf)
        for (const { object_type, object_id } of list)
          put(pk, side.toUpperCase(), byId.get(`${String(object_type)}/${String(object_id)}`))
        const kind = kindOf(fields[`termination_${side}_type`])
        put(pk, side.toUpperCase(), byId.get(`${kind}/${String(fields[`termination_${side}_id`])}`))
      }
    else put(fields.cable, fields.cable_end, row)
  }
  return ends
}
