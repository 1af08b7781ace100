import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  type CedarValueJson,
  type DetailedError,
  type EntityJson,
  type PolicyJson,
  policySetTextToParts,
  policyToJson,
  preparsePolicySet,
  preparseSchema,
  statefulIsAuthorized,
  validate,
} from '@cedar-policy/cedar-wasm/nodejs'
import type { Permission } from '../../shared/auth/permissions.ts'
import { ConfigError } from '../../shared/config.ts'
import { CODES, type CodeOf } from '../../shared/contracts/codes.ts'
import type { RefusalCode } from '../../shared/contracts/operations/graph.ts'
import { pick, pluck } from '../../shared/data/pick.ts'
import { refusal } from '../../shared/errors.ts'

/** The permission that each act needs over every target (auth.md 9). */
export const PERMISSION_OF = {
  'operation.pause': 'operation:control',
  'operation.resume': 'operation:control',
  'operation.cancel': 'operation:control',
  'operation.force_cancel': 'operation:control',
  'operation.intervene': 'operation:intervene',
  'operation.delegate': 'gate:decide',
  'operation.signal': 'signal:send',
  'node.retry': 'operation:control',
  'node.intervene': 'operation:intervene',
  'gate.approve': 'gate:decide',
  'gate.reject': 'gate:decide',
  'gate.break_glass': 'gate:decide',
  'plan.start': 'plan:start',
  'patch.propose': 'patch:propose',
  'patch.approve': 'patch:decide',
  'patch.reject': 'patch:decide',
} as const satisfies Record<string, Permission>
export type PolicyAction = keyof typeof PERMISSION_OF

/** The object as policies see it: the members of the schema, `labels` as tags. */
export type PolicyObject = {
  type: 'Operation' | 'Gate' | 'Plan' | 'Patch'
  id: string
  requester: string
  /** The people behind the machine that requested it: its acts count as theirs. */
  behind: readonly string[]
  involved: readonly string[]
  four_eyes: boolean
  groups: readonly string[]
  risk: string
  environment: string | null
  types: readonly string[]
  regions: readonly string[]
  labels: Readonly<Record<string, string>>
  preview?: PreviewFacts | undefined
}

/** A tool's preview as policies see it (signalbox.cedarschema). */
export type PreviewFacts = {
  create: number
  update: number
  replace: number
  delete: number
  unknowns: number
  binding: string
  kinds: string[]
  resources: string[]
  complete: boolean
}

export type PolicyRequest = {
  action: PolicyAction
  user_id: string
  kind: 'person' | 'machine'
  groups: readonly string[]
  object: PolicyObject
  granted: boolean
  both: boolean
  as_groups: readonly string[]
  auth_age_s: number
}

export type Policy = { id: string; code: CodeOf<'policy_denied'>; detail: string; text: string; json: PolicyJson }

/** The policies of this app. */
export const FOLDER = fileURLToPath(new URL('.', import.meta.url))
let loads = 0

/**
 * Loads the authorization policies and those of a site (`<dir>/*.cedar`, which may only forbid), checks them against the
 * schema and parses them once. A fault stops the start and names file and policy.
 */
export const loadPolicies = (site_dir?: string, observe: (seconds: number) => void = () => {}) => {
  const policies = readPolicies(join(FOLDER, 'authorization.cedar'))
  const site = site_dir ? cedarFiles(site_dir).flatMap((file) => readSitePolicies(file)) : []
  const all = [...policies, ...site]
  const staticPolicies = Object.fromEntries(all.map(({ id, text }) => [id, text]))
  if (Object.keys(staticPolicies).length !== all.length) throw new ConfigError('Two Cedar policies have the same @id.')
  const authorize = preparePolicies(staticPolicies)
  const order = new Map(all.map((policy, index) => [policy.id, { ...policy, index }]))

  /** The policies that forbid it; `undefined` if it is allowed. */
  const ask = (request: PolicyRequest) => {
    const { decision, diagnostics } = authorize(request)
    const [broken] = diagnostics.errors
    if (broken) throw new Error(`${broken.policyId}: ${broken.error.message}`)
    if (decision === 'allow') return undefined
    return diagnostics.reason.flatMap((id) => order.get(id) ?? [])
  }
  const ofSite = new Set(pluck(site, 'id'))
  /** A site's policies on interventions also hold for a delegation, which is one. */
  const askSite = (request: PolicyRequest) => {
    if (ofSite.size === 0 || request.action !== 'operation.delegate') return []
    return (ask({ ...request, action: 'operation.intervene' }) ?? []).filter(({ id }) => ofSite.has(id))
  }

  const evaluate = (request: PolicyRequest): RefusalCode | undefined => {
    const started = performance.now()
    const own = ask(request)
    const forbidding = [...new Set([...(own ?? []), ...askSite(request)])].sort((a, b) => a.index - b.index)
    observe((performance.now() - started) / 1000)
    const [first] = forbidding
    if (!first) return own && OUT_OF_SCOPE
    return {
      category: 'policy_denied',
      code: first.code,
      detail: first.detail,
      extra: { policy_ids: forbidding.map(({ id }) => id) },
    }
  }
  const remembered = rememberAnswers(pluck(all, 'text'), evaluate)
  /** Returns a command's refusal by policy, or `undefined`. The first forbidding one in file order gives the code. */
  const refuse = (request: PolicyRequest): RefusalCode | undefined =>
    request.granted ? remembered(request) : OUT_OF_SCOPE
  return { refuse, /** Whether policies of the site need types and regions. */ site: site.length > 0 }
}
export type Policies = ReturnType<typeof loadPolicies>

const OUTSIDE = 'Your roles do not cover every target of this operation.'
const OUT_OF_SCOPE = refusal('policy_denied', 'out_of_scope', OUTSIDE, { extra: { policy_ids: [] } })

/** Checks policies against the schema and parses them once; the result answers requests. Throws a ConfigError. */
export const preparePolicies = (staticPolicies: Record<string, string>) => {
  const schema = readFileSync(join(FOLDER, 'signalbox.cedarschema'), 'utf8')
  const fault = faultOf(validate({ schema, policies: { staticPolicies } }))
  if (fault) throw new ConfigError(fault)
  const name = `operations-${++loads}`
  preparseSchema(name, schema)
  preparsePolicySet(name, { staticPolicies })
  return (request: Omit<PolicyRequest, 'action'> & { action: PolicyAction | 'plan.execute' }) => {
    const answer = statefulIsAuthorized({
      principal: { type: 'User', id: request.user_id },
      action: { type: 'Action', id: request.action },
      resource: { type: request.object.type, id: request.object.id },
      context: contextOf(request),
      preparsedSchemaName: name,
      preparsedPolicySetId: name,
      validateRequest: true,
      entities: entitiesOf(request),
    })
    if (answer.type === 'failure') throw new Error(answer.errors.map(({ message }) => message).join('; '))
    return answer.response
  }
}

/** Describes the faults that the schema finds in policies; `undefined` if there are none. */
const faultOf = (checked: ReturnType<typeof validate>): string | undefined => {
  const faults: { error: DetailedError; policyId?: string }[] =
    checked.type === 'failure' ? checked.errors.map((error) => ({ error })) : checked.validationErrors
  const [fault] = faults
  return fault && `The Cedar policy ${fault.policyId ?? ''} does not match the schema: ${fault.error.message}`
}

const contextOf = ({ granted, both, as_groups, auth_age_s, user_id }: Omit<PolicyRequest, 'action'>) => ({
  granted,
  both,
  as_groups: [...as_groups],
  auth_age_s: Math.max(0, Math.floor(auth_age_s)),
  source: 'api',
  user_id,
})

const entitiesOf = ({ user_id, kind, groups, object }: Omit<PolicyRequest, 'action'>): EntityJson[] => {
  const { type, id, labels, environment, ...rest } = object
  const attrs: Record<string, CedarValueJson> = {
    ...pick(rest, 'requester', 'four_eyes', 'risk'),
    behind: [...rest.behind],
    involved: [...rest.involved],
    groups: [...rest.groups],
    environment: environment ?? '',
    types: [...rest.types],
    regions: [...rest.regions],
    ...(rest.preview && { preview: rest.preview }),
  }
  return [
    { uid: { type: 'User', id: user_id }, attrs: { kind, groups: [...groups] }, parents: [] },
    { uid: { type, id }, attrs, parents: [], tags: { ...labels } },
  ]
}

const cedarFiles = (dir: string): string[] => {
  try {
    return readdirSync(dir)
      .filter((name) => name.endsWith('.cedar'))
      .sort()
      .map((name) => join(dir, name))
  } catch (error) {
    throw new ConfigError(`OPERATIONS__POLICY__DIR names ${dir}, which cannot be read: ${(error as Error).message}`)
  }
}

/** Site policies also use the closed set of codes; any other code refuses as `hard_policy`. */
const codeOf = (name: string): Policy['code'] =>
  name in CODES.policy_denied ? (name as Policy['code']) : 'hard_policy'

/** The policies of one file. Throws a ConfigError that names the file. */
export const readPolicies = (file: string): Policy[] => {
  const parts = policySetTextToParts(readFileSync(file, 'utf8'))
  if (parts.type === 'failure') throw new ConfigError(`${file}: ${parts.errors[0]?.message}`)
  if (parts.policy_templates.length > 0) throw new ConfigError(`${file}: templates are not supported.`)
  return parts.policies.map((text) => {
    const parsed = policyToJson(text)
    if (parsed.type === 'failure') throw new ConfigError(`${file}: ${parsed.errors[0]?.message}`)
    const { id, code, detail } = parsed.json.annotations ?? {}
    if (!id) throw new ConfigError(`${file}: a policy has no @id.`)
    return { id, code: codeOf(code ?? id), detail: detail ?? `The policy ${id} forbids this.`, text, json: parsed.json }
  })
}

/** A site can only narrow permissions. Its conditions on plan.execute belong to planning (hard, soft, advisory). */
const readSitePolicies = (file: string): Policy[] => {
  if (/\/(hard|soft|advisory)\.cedar$/.test(file)) return []
  const policies = readPolicies(file)
  const permit = policies.find(({ json }) => json.effect !== 'forbid')
  if (permit) throw new ConfigError(`${file}: ${permit.id} permits; policies of a site may only forbid.`)
  return policies
}

/** How many answers are cached; above that all are dropped at once, which costs a moment's evaluations. */
const MAX_KEPT = 5000

/** Returns the seconds that policies compare a login's age with; `undefined` if they use the age in any other way. */
const ageSteps = (policies: readonly string[]): number[] | undefined => {
  const text = policies.join('\n')
  const steps = [...text.matchAll(/\bcontext\.auth_age_s\s*>\s*(\d+)(?=\s*(?:[})]|&&|\|\|))/g)]
  return steps.length === text.split('auth_age_s').length - 1 ? steps.map(([, seconds]) => Number(seconds)) : undefined
}

/** A policy that names one plan, operation, gate or patch. */
const NAMES_OBJECT = /\b(?!Action\b|User\b)\w+\s*::\s*"/

/**
 * Asks policies each question once: an answer depends on the request alone, and one page repeats the same few
 * questions. Ages of a login count as equal if no policy tells them apart, and so do objects of equal attributes.
 */
const rememberAnswers = <R extends { auth_age_s: number; object: object }, A>(
  policies: readonly string[],
  ask: (request: R) => A,
): ((request: R) => A) => {
  const steps = ageSteps(policies)
  const named = policies.some((text) => NAMES_OBJECT.test(text))
  const kept = new Map<string, A>()
  return (request) => {
    const seconds = Math.max(0, Math.floor(request.auth_age_s))
    const age = steps ? steps.filter((step) => seconds > step).length : seconds
    const object = named ? request.object : { ...request.object, id: '' }
    const key = JSON.stringify({ ...request, object, auth_age_s: age })
    const known = kept.get(key)
    if (known !== undefined || kept.has(key)) return known as A
    const answer = ask(request)
    if (kept.size >= MAX_KEPT) kept.clear()
    kept.set(key, answer)
    return answer
  }
}
