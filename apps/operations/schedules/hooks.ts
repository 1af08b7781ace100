import { createHmac, timingSafeEqual } from 'node:crypto'
import {
  beginRun,
  getSchedule,
  joinWaiting,
  lockSchedule,
  moveSchedule,
  type Schedule,
  saveDelivery,
} from '../../../db/operations/plans/schedules.ts'
import type { HookDeliveryView } from '../../shared/contracts/operations/schedules.ts'
import { AppError, notFound } from '../../shared/errors.ts'
import { CelError, compileCel } from '../../shared/expressions/cel.ts'
import { storableText } from '../../shared/run/storable.ts'
import { type Mutation, mutate } from '../command/mutate.ts'
import type { Uses } from '../deps.ts'
import { throwIfRefused } from '../policies/authority.ts'
import { audit, refuseSecret, sees } from './commands.ts'

type Deps = Uses<'clock' | 'db' | 'keys' | 'notifyKeys'>

/** How far the time of a delivery may differ from ours, in milliseconds. */
const TOLERANCE_MS = 5 * 60_000
/** Deliveries that a schedule accepts per minute. */
const A_MINUTE = 60
const MAX_DETAIL = 300

/**
 * Creates the next secret of a webhook; the previous one stays valid for `overlap_s`. Only the owner may do this,
 * because a schedule acts with its owner's rights. The stored answer holds only the number of the secret.
 */
export const makeSecret = (deps: Deps, mutation: Mutation, schedule_id: string, overlap_s: number) =>
  mutate(deps, mutation, async (tx) => {
    const schedule = await lockSchedule(tx, schedule_id)
    if (!schedule || !(await sees(tx, mutation.caller, schedule))) throw notFound('schedule', schedule_id)
    throwIfRefused(refuseSecret(mutation.caller, schedule))
    const secret_number = schedule.secret_number + 1
    const until = secret_number > 1 && overlap_s > 0 ? deps.clock.now().getTime() + overlap_s * 1000 : undefined
    const previous_until = until === undefined ? null : new Date(until).toISOString()
    const keep = async () => {
      await moveSchedule(tx, schedule_id, { secret_number, previous_until })
      await audit(deps, tx, mutation, 'schedule.secret', schedule_id, { reason: null, after: { secret_number } })
      return { status: 200, body: { schedule_id, secret_number, previous_until } }
    }
    return { effect: { previous_until }, keep }
  })

/** A webhook as received: `body` holds its bytes, which the signature covers. */
export type Delivery = { headers: Record<string, string | string[] | undefined>; body: Buffer }

/**
 * Takes each webhook once and begins a run, which acts with its owner's rights like any other. It refuses a schedule
 * that does not exist, one without a webhook, and a wrong signature in the same way.
 */
export const takeDelivery = async (deps: Deps, schedule_id: string, delivery: Delivery): Promise<HookDeliveryView> => {
  const found = await getSchedule(deps.db, schedule_id)
  const proof = found && 'webhook' in found.when ? proofOf(deps, found, found.when.webhook, delivery) : undefined
  if (proof === undefined)
    throw new AppError('policy_denied', 'signature_invalid', 'The signature is not valid.', { status: 401 })
  return deps.db.transaction(async (tx) => {
    const schedule = (await lockSchedule(tx, schedule_id)) as Schedule
    const unmet =
      schedule.status === 'active' ? whyUnmet(schedule, delivery.body) : `The schedule is ${schedule.status}.`
    const status = unmet === undefined ? 'accepted' : 'ignored'
    const detail = unmet === undefined ? null : storableText(unmet.slice(0, MAX_DETAIL))
    const { is_new, lately } = await saveDelivery(tx, { schedule_id, ...proof, status, detail })
    if (!is_new) return { status: 'duplicate', detail: 'It was delivered before.' }
    if (lately > A_MINUTE)
      throw new AppError('internal_error', 'overloaded', `The schedule takes ${A_MINUTE} deliveries a minute.`, {
        ...{ status: 429, retryable: true, retry_after_ms: 60_000 },
        hint: 'Deliver it again after the time in Retry-After.',
      })
    if (status === 'accepted' && !(await joinWaiting(tx, schedule_id)))
      await beginRun(tx, schedule_id, deps.clock.now().toISOString())
    return { status, detail }
  })
}

type Hook = Extract<Schedule['when'], { webhook: unknown }>['webhook']

/** Returns the id under which a delivery counts once, and which of the secrets signed it. */
const proofOf = (deps: Deps, schedule: Schedule, { signature }: Hook, { headers, body }: Delivery) => {
  const one = (name: string) => (typeof headers[name] === 'string' ? headers[name] : '')
  const id = one('webhook-id')
  const at = one('webhook-timestamp')
  const given =
    signature === 'standard'
      ? one('webhook-signature')
          .split(' ')
          .slice(0, 10)
          .flatMap((part) => (part.startsWith('v1,') ? [Buffer.from(part.slice(3), 'base64')] : []))
      : [Buffer.from(one('x-hub-signature-256').replace(/^sha256=/, ''), 'hex')]
  if (signature === 'standard') {
    if (!/^[\x21-\x7e]{1,200}$/.test(id) || !/^\d{1,12}$/.test(at)) return undefined
    if (Math.abs(deps.clock.now().getTime() - Number(at) * 1000) > TOLERANCE_MS) return undefined
  }
  const signed = signature === 'standard' ? Buffer.concat([Buffer.from(`${id}.${at}.`), body]) : body
  for (const [secret, secret_number] of secretsOf(deps, schedule)) {
    // A code host uses the secret as text; Standard Webhooks uses the bytes that it encodes.
    const key = signature === 'standard' ? Buffer.from(secret.replace(/^whsec_/, ''), 'base64') : secret
    const right = createHmac('sha256', key).update(signed).digest()
    if (given.some((each) => each.length === right.length && timingSafeEqual(each, right)))
      // The id of a code host's delivery is not signed, so the body itself identifies the delivery.
      return {
        delivery_id:
          signature === 'standard' ? id : createHmac('sha256', schedule.schedule_id).update(body).digest('hex'),
        secret_number,
      }
  }
  return undefined
}

const secretsOf = ({ notifyKeys, clock }: Deps, { schedule_id, secret_number, previous_until }: Schedule) => {
  const old = previous_until !== null && Date.parse(previous_until) > clock.now().getTime()
  const numbers = [...(secret_number > 0 ? [secret_number] : []), ...(old ? [secret_number - 1] : [])]
  return numbers.flatMap((number) =>
    notifyKeys.hookSecrets(schedule_id, number).map((secret) => [secret, number] as const),
  )
}

const whyUnmet = ({ when }: Schedule, bytes: Buffer): string | undefined => {
  if (!('webhook' in when) || when.webhook.if === undefined) return undefined
  try {
    const body: unknown = JSON.parse(bytes.toString('utf8'))
    return compileCel(when.webhook.if, ['body']).test({ body })
      ? undefined
      : `The body does not meet ${when.webhook.if}.`
  } catch (error) {
    if (error instanceof CelError || error instanceof SyntaxError) return `The body cannot be read: ${error.message}`
    throw error
  }
}
