import { randomBytes } from 'node:crypto'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import { Code, ConnectError } from '@connectrpc/connect'
import type { Db } from '../../../db/client.ts'
import { getCredential } from '../../../db/credential/queries.ts'
import type { TotpRow } from '../../../db/credential/tables.ts'
import {
  changeTotp,
  deleteTotp,
  getTotp,
  lockTotp,
  resealTotp,
  saveTotp,
  totpsSealedBy,
} from '../../../db/credential/totp.ts'
import type { Clock } from '../../shared/clock.ts'
import { type Kek, unsealBy } from '../../shared/codec/kek.ts'
import { seal } from '../../shared/codec/seal.ts'
import type { BeginTotpRequest, SetTotpRequest, VerifyTotpRequest } from '../../shared/contracts/gen/auth_pb.ts'
import { isUuid, uuidv7 } from '../../shared/ids.ts'
import { shownForms, stepOf } from './codes.ts'

type Deps = { db: Db; clock: Clock; keks: readonly [Kek, ...Kek[]] }

/** 160 bits, as RFC 4226 recommends. */
const SECRET_BYTES = 20
const SETUP_MS = 600_000
/** Three codes of a million are valid at a time, so finding one takes years at this many guesses an hour. */
const MOST_FAILURES = 10
const HOUR_MS = 3_600_000
const BATCH = 500

type Setup = { id: string; secret: string; expires_ms: number }

const aboutSetup = (user_id: string) => `totp set-up of ${user_id}`
const aboutRow = ({ user_id, id }: Pick<TotpRow, 'user_id' | 'id'>) => `totp ${id} of ${user_id}`
const message = ({ created_at, last_used_at }: Pick<TotpRow, 'created_at' | 'last_used_at'>) => ({
  createdAt: timestampFromDate(new Date(created_at)),
  ...(last_used_at && { lastUsedAt: timestampFromDate(new Date(last_used_at)) }),
})

const personOf = (user_id: string): string => {
  if (isUuid(user_id)) return user_id
  throw new ConnectError('user_id must be given', Code.InvalidArgument)
}

export const readTotp = async ({ db }: Deps, user_id: string) => {
  const [row, password] = await Promise.all([getTotp(db, personOf(user_id)), getCredential(db, user_id)])
  return { ...(row && { totp: message(row) }), hasPassword: Boolean(password?.password_hash) }
}

/** A new secret. It is not stored: the caller returns it, sealed, with the first code. */
export const beginTotp = ({ keks, clock }: Deps, { userId, username, issuer }: BeginTotpRequest) => {
  const user_id = personOf(userId)
  const secret = randomBytes(SECRET_BYTES)
  const expires_ms = clock.now().getTime() + SETUP_MS
  const setup: Setup = { id: uuidv7(), secret: secret.toString('hex'), expires_ms }
  const [{ kek_id, key }] = keks
  return {
    ...shownForms(secret, issuer, username),
    setup: `${kek_id}.${seal(key, aboutSetup(user_id), JSON.stringify(setup)).toString('base64url')}`,
    expiresAt: timestampFromDate(new Date(expires_ms)),
  }
}

const openSetup = ({ keks, clock }: Deps, user_id: string, text: string): Setup | undefined => {
  const [kek_id = '', sealed = ''] = text.split('.')
  try {
    const opened = unsealBy(keks, kek_id, aboutSetup(user_id), Buffer.from(sealed, 'base64url'))
    const setup = JSON.parse(opened.toString()) as Setup
    return setup.expires_ms > clock.now().getTime() ? setup : undefined
  } catch {
    return undefined
  }
}

/**
 * Makes a setup the person's authenticator app, replacing the previous one, once a code proves that the app has it. The
 * same one again has no effect; one that is older than the app, or whose app was removed, has expired.
 */
export const setTotp = async (deps: Deps, { userId, setup: text, code }: SetTotpRequest) => {
  const user_id = personOf(userId)
  const setup = openSetup(deps, user_id, text)
  if (!setup) return { refused: 'challenge_expired' }
  const { id } = setup
  const secret = Buffer.from(setup.secret, 'hex')
  const now = deps.clock.now()
  const last_step = stepOf(secret, code, now)
  if (last_step === undefined) return { refused: 'totp_invalid' }
  const [{ kek_id, key }] = deps.keks
  const row = { user_id, id, last_step, kek_id, secret: seal(key, aboutRow({ user_id, id }), secret) }
  const saved = await deps.db.transaction((tx) => saveTotp(tx, { ...row, created_at: now.toISOString() }))
  const had = saved ?? (await getTotp(deps.db, user_id))
  return had?.id === id ? { totp: message(had) } : { refused: 'challenge_expired' }
}

/**
 * Whether this is an unused code of the person's app. All codes of one person are checked one after another, across
 * processes. So of two requests with the same code one wins, and no burst of guesses outruns the lock.
 */
export const verifyTotp = ({ db, clock, keks }: Deps, { userId, code }: VerifyTotpRequest) =>
  db.transaction(async (tx) => {
    const row = await lockTotp(tx, personOf(userId))
    if (!row) return { cause: 'none' }
    const now = clock.now()
    const locked_ms = row.locked_until ? new Date(row.locked_until).getTime() - now.getTime() : 0
    if (locked_ms > 0) return { cause: 'locked', lockedMs: BigInt(locked_ms) }
    const step = stepOf(unsealBy(keks, row.kek_id, aboutRow(row), row.secret), code, now)
    if (step !== undefined && step > row.last_step) {
      await changeTotp(tx, row.user_id, { last_step: step, last_used_at: now.toISOString() })
      return { isValid: true }
    }
    const counted = countFailure(row, now)
    await changeTotp(tx, row.user_id, counted)
    const cause = step === undefined ? 'wrong_code' : 'replayed'
    return counted.locked_until === null ? { cause } : { cause, lockedMs: BigInt(HOUR_MS), lockedNow: true }
  })

/** A right code resets no failures, or a password thief could keep guessing under cover of the owner's logins. */
const countFailure = ({ failures, failures_since }: TotpRow, now: Date) => {
  const recent = failures_since !== null && now.getTime() - new Date(failures_since).getTime() < HOUR_MS
  if (recent && failures + 1 >= MOST_FAILURES)
    return { failures: 0, failures_since: null, locked_until: new Date(now.getTime() + HOUR_MS).toISOString() }
  const since = recent ? failures_since : now.toISOString()
  return { failures: recent ? failures + 1 : 1, failures_since: since, locked_until: null }
}

export const removeTotp = async ({ db }: Deps, user_id: string) => ({
  removed: (await db.transaction((tx) => deleteTotp(tx, personOf(user_id)))) !== undefined,
})

/** Reseals with the newest key what older ones sealed, so that these open no secret of a later time. */
export const resealTotps = async ({ db, keks }: Deps): Promise<void> => {
  const [{ kek_id, key }, ...older] = keks
  const ids = older.map((one) => one.kek_id)
  for (let rows = await totpsSealedBy(db, ids, BATCH); rows.length > 0; ) {
    for (const row of rows) {
      const secret = unsealBy(keks, row.kek_id, aboutRow(row), row.secret)
      await resealTotp(db, row, seal(key, aboutRow(row), secret), kek_id)
    }
    rows = await totpsSealedBy(db, ids, BATCH)
  }
}
