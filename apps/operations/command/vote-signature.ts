import { randomBytes } from 'node:crypto'
import type { Tx } from '../../../db/client.ts'
import type { Answer } from '../../../db/command/run.ts'
import { insertBallot, spendBallot } from '../../../db/operations/gates/ballots.ts'
import type { Caller } from '../../shared/auth/caller.ts'
import { clientDataOf } from '../../shared/auth/client-data.ts'
import type { Ballot, BallotBody, BallotReply, VoteSignature } from '../../shared/contracts/operations/gates.ts'
import type { Assertion } from '../../shared/contracts/session/passkeys.ts'
import { AppError, wrongAt } from '../../shared/errors.ts'
import { challengeOf } from '../../shared/evidence/vote-signature.ts'
import type { SignedBy, Trust, Uses } from '../deps.ts'
import { type Mutation, mutate } from './mutate.ts'

const BALLOT_S = 300

/** Issues one ballot per key for the caller's passkey (federation.md 8). It states the page; the vote checks the rows. */
export const issueBallot = async (
  deps: Uses<'clock' | 'db' | 'keys' | 'trust'>,
  mutation: Mutation,
  operation_id: string,
  { type, id, round, digest }: BallotBody,
): Promise<Answer> => {
  if (type === 'gate' && round === null)
    throw wrongAt('/round', 'is the round that the gate shows', {
      as: 'required',
      detail: 'A ballot for a gate must name its round.',
    })
  const { user_id } = mutation.caller
  const { rp_id, credential_ids } = await deps.trust.passkeys.of(user_id)
  const nonce = randomBytes(16).toString('base64url')
  const expires_at = new Date(deps.clock.now().getTime() + 1000 * BALLOT_S).toISOString()
  const decision = 'approve' as const
  const ballot: Ballot = { v: 1, rp_id, operation_id, type, id, round, digest, decision, user_id, nonce, expires_at }
  const reply: BallotReply = { ballot, credential_ids }
  return mutate(deps, mutation, async (tx) => ({
    effect: {},
    keep: async () => {
      await insertBallot(tx, challengeOf(ballot), ballot)
      return { status: 200, body: reply }
    },
  }))
}

/** Whose passkey answered the challenge of a vote, as identity says. */
export type Proof = { challenge: string; by: SignedBy }

/** Identity has not been asked about this answer yet. */
class Unproved extends Error {
  readonly challenge: string
  constructor(challenge: string) {
    super('identity was not asked about this signature')
    this.challenge = challenge
  }
}

/** Runs `work`, which may find that a signature counts. Identity then verifies it without a lock, and `work` reruns. */
export const withProof = async <T>(
  { passkeys }: Pick<Trust, 'passkeys'>,
  { user_id }: Caller,
  assertion: Assertion,
  work: (proof?: Proof) => Promise<T>,
): Promise<T> => {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof Unproved)) throw error
    const { challenge } = error
    const by = await passkeys.verify(user_id, challenge, JSON.stringify(assertion))
    if (!by) throw invalid("The passkey's answer is refused.")
    return work({ challenge, by })
  }
}

type Voted = Pick<Ballot, 'operation_id' | 'type' | 'id' | 'round' | 'digest' | 'user_id'>

/**
 * Returns the signature of a vote, which uses up its ballot. Throws if it is missing, and for one that does not match
 * exactly this vote.
 */
export const signatureOf = async (
  tx: Tx,
  vote: Voted,
  assertion: Assertion | undefined,
  proof: Proof | undefined,
): Promise<VoteSignature> => {
  if (!assertion) throw new AppError('policy_denied', 'signature_required', 'This gate needs your passkey.')
  const { response } = assertion
  const stated = clientDataOf(response.clientDataJSON)
  if (!stated) throw invalid("The passkey's answer cannot be read.")
  const challenge = String(stated.challenge)
  const ballot = await spendBallot(tx, challenge)
  if (!ballot)
    throw new AppError('version_conflict', 'challenge_expired', 'The ballot has expired or was used.', {
      hint: 'Ask for a new ballot and sign it.',
    })
  const other = (Object.keys(vote) as (keyof Voted)[]).find((name) => ballot[name] !== vote[name])
  if (other) throw invalid(`The passkey signed a different ${other} than your vote names.`)
  if (proof?.challenge !== challenge) throw new Unproved(challenge)
  const { credential_id, jwk } = proof.by
  const { clientDataJSON: client_data, authenticatorData: authenticator_data, signature } = response
  return { ballot, credential_id, jwk, client_data, authenticator_data, signature }
}

const invalid = (detail: string) =>
  new AppError('policy_denied', 'assertion_invalid', detail, {
    hint: 'Ask for a new ballot and sign it with a passkey of yours.',
  })
