import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigError } from '../../shared/config.ts'
import type { RefusalCode } from '../../shared/contracts/operations/graph.ts'
import { pick } from '../../shared/data/pick.ts'
import { refusal } from '../../shared/errors.ts'
import { FOLDER, type Policy, type PreviewFacts, preparePolicies, readPolicies } from './cedar.ts'

/** The effect of a planning policy (operations.md 4.3): it blocks the plan, adds a gate, or is shown with the plan. */
const POLICY_LEVELS = ['hard', 'soft', 'advisory'] as const
export type PolicyLevel = (typeof POLICY_LEVELS)[number]
export type PolicyResult = { policy_id: string; level: PolicyLevel; result: 'passed' | 'forbids'; detail: string }

/** A plan as these policies see it: what it does and where, not who requests it. */
export type PlanFacts = {
  intent_id: string
  requester: string
  risk: string
  types: string[]
  regions: string[]
  labels: Record<string, string>
  preview?: PreviewFacts
}
export type JudgedPlan = PolicyResult & {
  /** Groups that may override a soft policy; if empty, anyone who may decide gates. */ approvers: string[]
  /** How many approvals override it. */
  quorum: number
}

type Rule = Policy & { level: PolicyLevel } & Pick<JudgedPlan, 'approvers' | 'quorum'>
const MOST_APPROVALS = 20
const PERMIT = '@id("planned") permit (principal, action == Action::"plan.execute", resource);'

/**
 * Loads `hard.cedar`, `soft.cedar` and `advisory.cedar` of this app and of a site. They may only forbid
 * `Action::"plan.execute"`. They judge a plan by its effects, so groups of the principal are refused in them. A fault
 * stops the start and names the file and the policy.
 */
export const loadPlanPolicies = (site_dir?: string) => {
  const rules = [FOLDER, ...(site_dir ? [site_dir] : [])].flatMap((dir) =>
    POLICY_LEVELS.flatMap((level) => readLevel(join(dir, `${level}.cedar`), level)),
  )
  const staticPolicies = { planned: PERMIT, ...Object.fromEntries(rules.map(({ id, text }) => [id, text])) }
  if (Object.keys(staticPolicies).length !== rules.length + 1)
    throw new ConfigError('Two Cedar policies of plan.execute have the same @id.')
  const authorize = preparePolicies(staticPolicies)

  /** Returns the result of each policy for a plan, in the order of levels and files. */
  const judge = (facts: PlanFacts): JudgedPlan[] => {
    const { requester, labels } = facts
    const plan = { type: 'Plan', id: facts.intent_id, behind: [], involved: [requester], four_eyes: false } as const
    const object = { ...plan, ...pick(facts, 'requester', 'risk', 'types', 'regions', 'preview'), groups: [], labels }
    const who = { user_id: requester, kind: 'person', groups: [], as_groups: [], auth_age_s: 0 } as const
    const { diagnostics } = authorize({
      ...who,
      action: 'plan.execute',
      granted: true,
      both: false,
      object: { ...object, environment: labels.environment ?? null },
    })
    const forbids = new Set(diagnostics.reason)
    // A policy that cannot be evaluated forbids: an error must not open anything.
    const broken = new Map(diagnostics.errors.map(({ policyId, error }) => [policyId, error.message]))
    return rules.map(({ id, level, detail, approvers, quorum }) => {
      const error = broken.get(id)
      const result = error !== undefined || forbids.has(id) ? 'forbids' : 'passed'
      return {
        policy_id: id,
        level,
        result,
        detail: error ? `It cannot be evaluated: ${error}` : detail,
        approvers,
        quorum,
      }
    })
  }
  return { judge }
}
export type PlanPolicies = ReturnType<typeof loadPlanPolicies>

/** Returns the refusal by hard policies, or `undefined`. */
export const refuseHard = (results: readonly PolicyResult[]): RefusalCode | undefined => {
  const hard = results.filter(({ level, result }) => level === 'hard' && result === 'forbids')
  const [first] = hard
  const policy_ids = hard.map(({ policy_id }) => policy_id)
  return first && refusal('policy_denied', 'hard_policy', first.detail, { extra: { policy_ids } })
}

const readLevel = (file: string, level: PolicyLevel): Rule[] => {
  if (!existsSync(file)) return []
  return readPolicies(file).map((policy) => {
    const { id, json, text } = policy
    const wrong = (why: string) => new ConfigError(`${file}: ${id} ${why}`)
    if (json.effect !== 'forbid') throw wrong('permits; policies of planning may only forbid.')
    const { action } = json as { action?: { op?: string; entity?: { id?: string } } }
    if (action?.op !== '==' || action.entity?.id !== 'plan.execute')
      throw wrong('is not of the one action plan.execute.')
    const [, seen] = /principal\s*\.\s*(groups|kind)/.exec(text) ?? []
    if (seen !== undefined) throw wrong(`uses ${seen} of the principal; a plan is judged by its effects.`)
    const groups = json.annotations?.approvers?.split(',').map((group) => group.trim()) ?? []
    if (groups.some((group) => !/^[a-z][a-z0-9-]{1,62}$/.test(group)))
      throw wrong('names approvers that are no groups; write @approvers("group, group").')
    if (groups.length > 0 && level !== 'soft') throw wrong('names approvers; only a soft policy can be overridden.')
    const quorum = Number(json.annotations?.quorum ?? 1)
    if (!Number.isInteger(quorum) || quorum < 1 || quorum > MOST_APPROVALS)
      throw wrong(`asks for no number of approvals from 1 to ${MOST_APPROVALS}; write @quorum("2").`)
    if (quorum > 1 && level !== 'soft') throw wrong('asks for approvals; only a soft policy can be overridden.')
    return { ...policy, level, approvers: groups, quorum }
  })
}
