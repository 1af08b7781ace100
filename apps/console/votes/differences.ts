import type { FieldChange, GateSubject } from '../api/types.ts'

type Leaf = [path: string, value: unknown]
const isScalar = (value: unknown): boolean => value === null || typeof value !== 'object'

/** The single values of a value by their paths; items of a list are named by their id or path, as in a preview. */
const leavesOf = (value: unknown, path = ''): Leaf[] => {
  if (isScalar(value) || (Array.isArray(value) && value.every(isScalar))) return [[path, value]]
  const members = Array.isArray(value)
    ? value.map((item: { id?: string; path?: string }, at): Leaf => [String(item?.id ?? item?.path ?? at), item])
    : Object.entries(value as object)
  return members.flatMap(([name, member]) => leavesOf(member, `${path}/${name}`))
}

/** The question by its parts: resources, released nodes, bound outputs, and the members that belong to none of them. */
const partsOf = (subject: GateSubject | null): Map<string, Map<string, unknown>> => {
  if (subject === null) return new Map()
  const { v: _, operation_id, gate_id, changes, releases, bound_outputs, ...rest } = subject
  return new Map(
    [
      ...changes.map(({ resource_id, fields, name: _name, ...change }): [string, Leaf[]] => [
        resource_id,
        [...leavesOf(change), ...fields.map(({ path, after }): Leaf => [path, after])],
      ]),
      ...releases.map(({ node_id, ...release }): [string, Leaf[]] => [node_id, leavesOf(release)]),
      ...bound_outputs.map(({ pointer, value }): [string, Leaf[]] => [pointer, leavesOf(value)]),
      [gate_id, leavesOf(rest)] as [string, Leaf[]],
    ].map(([id, leaves]) => [id, new Map(leaves)]),
  )
}

/** Compares the question that was read with the current one: all that its digest covers, value by value. */
export const differencesOf = (before: GateSubject | null, now: GateSubject | null): GateSubject['changes'] => {
  const [was, is] = [partsOf(before), partsOf(now)]
  return [...new Set([...was.keys(), ...is.keys()])].flatMap((id) => {
    const [old, fresh] = [was.get(id), is.get(id)]
    const fields = [...new Set([...(old?.keys() ?? []), ...(fresh?.keys() ?? [])])].flatMap((path): FieldChange[] => {
      const [a, b] = [old?.get(path) ?? null, fresh?.get(path) ?? null]
      return JSON.stringify(a) === JSON.stringify(b) ? [] : [{ path, before: a, after: b }]
    })
    const change = !old ? 'create' : !fresh ? 'delete' : 'update'
    return fields.length > 0 ? [{ resource_id: id, change, fields }] : []
  })
}
