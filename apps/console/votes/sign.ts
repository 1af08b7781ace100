import { digestOf } from '../../shared/contracts/client/digest.ts'
import { type Problem, problemFrom } from '../../shared/contracts/client/problem.ts'
import type { Ballot, BallotReply } from '../../shared/contracts/operations/gates.ts'
import { type Command, commandSender } from '../api/commands.ts'
import { signWith } from '../session/passkeys.ts'
import { tDecide } from '../words/decide.ts'

/**
 * Adds the signature of the person's passkey to an approval. The challenge is computed here, from a ballot that must
 * name what this page shows, so the server cannot get another one signed.
 */
export const signed = async (
  command: Command,
  operation_id: string,
  shown: Pick<Ballot, 'type' | 'id' | 'round' | 'digest'>,
): Promise<Command | Problem> => {
  const path = `/v1/operations/${encodeURIComponent(operation_id)}/ballots`
  const asked = await commandSender()<BallotReply>({ path, body: shown })
  if (asked.kind !== 'applied') return asked.kind === 'accepted' ? problemFrom(0, null) : asked.problem
  const { ballot, credential_ids } = asked.reply
  const named = { operation_id, ...shown }
  const other = Object.entries(named).some(([name, value]) => ballot[name as keyof Ballot] !== value)
  const hex = (await digestOf(ballot)).slice(7)
  const bytes = Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))
  const challenge = btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')
  const assertion = other ? null : await signWith({ challenge, rp_id: ballot.rp_id }, credential_ids)
  if (assertion === null)
    return {
      ...problemFrom(0, null),
      detail: credential_ids.length > 0 ? tDecide.gate.unsigned : tDecide.gate.no_passkey,
    }
  return { ...command, body: { ...command.body, assertion } }
}
