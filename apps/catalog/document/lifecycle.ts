import { type AppError, wrongAt } from '../../shared/errors.ts'

export type ChangeSource = 'user' | 'operation' | 'import'
export type Transition = { from: string; to: string; by: ChangeSource[] }
export type Lifecycle = { states: string[]; initial: string; terminal: string[]; transitions: Transition[] }

export const SOURCES: ChangeSource[] = ['user', 'operation', 'import']
const ways = (...pairs: [from: string, to: string][]): Transition[] =>
  pairs.map(([from, to]) => ({ from, to, by: SOURCES }))

/** The two lifecycles that a type may name (catalog.md 1). */
export const PRESETS: Record<'managed' | 'record', Lifecycle> = {
  managed: {
    states: ['planned', 'provisioning', 'active', 'updating', 'maintenance', 'failed', 'deprovisioning', 'retired'],
    initial: 'planned',
    terminal: ['retired'],
    transitions: ways(
      ['planned', 'provisioning'],
      ['provisioning', 'active'],
      ['active', 'updating'],
      ['updating', 'active'],
      ['active', 'maintenance'],
      ['maintenance', 'active'],
      ['active', 'deprovisioning'],
      ['failed', 'deprovisioning'],
      ['maintenance', 'deprovisioning'],
      ['deprovisioning', 'retired'],
      ['provisioning', 'failed'],
      ['updating', 'failed'],
      ['deprovisioning', 'failed'],
      ['failed', 'provisioning'],
      ['failed', 'updating'],
      ['planned', 'retired'],
    ),
  },
  record: {
    states: ['active', 'retired'],
    initial: 'active',
    terminal: ['retired'],
    transitions: ways(['active', 'retired']),
  },
}

export const isTerminal = (lifecycle: Lifecycle, state: string): boolean => lifecycle.terminal.includes(state)

/**
 * The states to which this source may bring the resource now. An import may not have seen the states between, and its
 * source may have put the resource back to the beginning: from there, all states are near again.
 */
const nextStates = (lifecycle: Lifecycle, from: string, by: ChangeSource): string[] => {
  const ways = lifecycle.transitions.filter((way) => way.by.includes(by))
  if (by === 'import') {
    const onward = reachedFrom(from, ways)
    const again = onward.length > 1 ? reachedFrom(lifecycle.initial, ways) : []
    return [...new Set([...onward, ...again])].filter((state) => state !== from)
  }
  return ways.filter((way) => way.from === from).map((way) => way.to)
}

const reachedFrom = (from: string, ways: readonly Transition[]): string[] => {
  const reached = new Set([from])
  for (const state of reached) for (const way of ways) if (way.from === state) reached.add(way.to)
  return [...reached]
}

/** The refusal of a transition that the type does not define, or `undefined`. Staying is always allowed. */
export const refuseTransition = (
  lifecycle: Lifecycle,
  from: string,
  to: string,
  by: ChangeSource,
): AppError | undefined => {
  const allowed = nextStates(lifecycle, from, by)
  if (from === to || allowed.includes(to)) return undefined
  const message = lifecycle.states.includes(to)
    ? `is not possible from ${from}`
    : `is not a state of this type (${lifecycle.states.join(', ')})`
  return wrongAt('/lifecycle_status', message, {
    code: 'lifecycle_transition',
    detail: `lifecycle_status ${to} ${message}.`,
    extra: { allowed, current: from },
    hint:
      allowed.length > 0 ? `Possible now: ${allowed.join(', ')}.` : `${from} is a terminal state of this lifecycle.`,
  })
}

/** The faults of a lifecycle that a pack defines itself, one sentence each. */
export const lifecycleFaults = ({ states, initial, terminal, transitions }: Lifecycle): string[] => {
  const faults: string[] = []
  const known = new Set(states)
  if (known.size !== states.length) faults.push('names a state twice')
  if (!known.has(initial)) faults.push(`starts in "${initial}", which is not one of its states`)
  if (terminal.includes(initial)) faults.push('starts in a terminal state')
  for (const state of terminal) if (!known.has(state)) faults.push(`ends in "${state}", which is not one of its states`)
  for (const { from, to } of transitions) {
    for (const state of [from, to])
      if (!known.has(state)) faults.push(`has a transition with the unknown state "${state}"`)
    if (terminal.includes(from)) faults.push(`has a transition out of the terminal state "${from}"`)
  }
  const reached = reachedFrom(initial, transitions)
  for (const state of states) if (!reached.includes(state)) faults.push(`cannot reach "${state}"`)
  return faults
}
