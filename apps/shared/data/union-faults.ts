import type { ErrorObject } from 'ajv'

/** Whether a fault says that a value is not of this kind. */
type Mark = (fault: ErrorObject, union: ErrorObject) => boolean
const OF_TYPE: readonly Mark[] = [
  ({ keyword, instancePath }, union) => keyword === 'type' && instancePath === union.instancePath,
]
/** Those that distinguish best come first. */
const OF_MEMBERS: readonly Mark[] = [
  (fault, union) => constAt(fault, union) !== undefined,
  ({ keyword, instancePath }, union) => keyword === 'additionalProperties' && instancePath === union.instancePath,
  ({ keyword, instancePath }, union) => keyword === 'required' && instancePath === union.instancePath,
]

/** The path of a member, such as `op`, that a kind requires to have one value. */
const constAt = ({ keyword, schemaPath, instancePath }: ErrorObject, union: ErrorObject): string | undefined => {
  const own = schemaPath.slice(union.schemaPath.length + 1).split('/').length
  return keyword === 'const' && (own === 2 || own === 4) ? instancePath : undefined
}

/**
 * Returns the faults of a value that may be one of several kinds, for the kind that it is meant to be: the one of its
 * type, of its discriminating member, or whose members it has. If its discriminating member has no known value, that is
 * the one fault. Returns all faults if no kind fits better than the others.
 */
export const ofItsKind = (faults: readonly ErrorObject[]): ErrorObject[] => {
  const dropped = new Set<ErrorObject>()
  const replaced = new Map<ErrorObject, ErrorObject>()
  for (const union of faults.filter(({ keyword }) => keyword === 'anyOf')) {
    const all = branchesOf(faults, union)
    const typed = narrowed(all, union, OF_TYPE)
    const unknown = wrongKind(typed, union)
    const kept = unknown ? typed : narrowed(typed, union, OF_MEMBERS)
    const one = unknown ?? missingIn(kept)
    if (!one && kept.length === all.length) continue
    if (one) replaced.set(union, one)
    else dropped.add(union)
    for (const branch of all) if (one || !kept.includes(branch)) for (const fault of branch) dropped.add(fault)
  }
  return faults.flatMap((fault) => (dropped.has(fault) ? [] : [replaced.get(fault) ?? fault]))
}

const narrowed = (branches: ErrorObject[][], union: ErrorObject, marks: readonly Mark[]): ErrorObject[][] => {
  let kept = branches
  for (const isForeign of marks) {
    const fitting = kept.filter((branch) => !branch.some((fault) => isForeign(fault, union)))
    if (fitting.length > 0) kept = fitting
  }
  return kept
}

const branchesOf = (faults: readonly ErrorObject[], union: ErrorObject): ErrorObject[][] => {
  const branches = new Map<string | undefined, ErrorObject[]>()
  for (const fault of faults) {
    if (!fault.schemaPath.startsWith(`${union.schemaPath}/`)) continue
    const [at] = fault.schemaPath.slice(union.schemaPath.length + 1).split('/')
    branches.set(at, [...(branches.get(at) ?? []), fault])
  }
  return [...branches.values()]
}

/** The discriminating member has the value of no kind. */
const wrongKind = (branches: readonly ErrorObject[][], union: ErrorObject): ErrorObject | undefined => {
  const wrong = branches.map((branch) => branch.find((fault) => constAt(fault, union) !== undefined))
  const [one] = wrong
  if (!one || wrong.length < 2 || wrong.some((fault) => fault?.instancePath !== one.instancePath)) return undefined
  const allowedValues = [...new Set(wrong.map((fault) => fault?.params.allowedValue as unknown))]
  return { ...one, keyword: 'enum', params: { allowedValues }, message: 'must be equal to one of the allowed values' }
}

/** The member that all kinds require and the value lacks. */
const missingIn = ([first = [], ...others]: readonly ErrorObject[][]): ErrorObject | undefined =>
  others.length === 0
    ? undefined
    : first.find(
        ({ keyword, instancePath, params }) =>
          keyword === 'required' &&
          others.every((branch) =>
            branch.some(
              (other) => other.instancePath === instancePath && other.params.missingProperty === params.missingProperty,
            ),
          ),
      )
