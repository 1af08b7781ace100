import { createPublicKey, type JsonWebKey, type KeyObject, sign, verify } from 'node:crypto'
import { createRecount, type Ran, type Recounted } from '../contracts/client/recount.ts'
import type { Fields } from '../contracts/client/votes.ts'
import type { VoteSignature } from '../contracts/operations/gates.ts'
import { canonicalJson, digest } from '../data/digest.ts'
import { readPointer } from '../data/pointer.ts'
import { voteFault } from './vote-signature.ts'

/** The last line of an export, which states the chain before it, signed (operations.md 6.3). */
export type ExportHead = {
  type: 'head'
  operation_id: string
  seq: number
  hash: string
  plan_hash: string
  made_at: string
  kid: string
}
export type SigningKey = { kid: string; private_key: KeyObject }
/** The first fault: its line in the file, the record's place in the chain, and the reason. */
export type EvidenceFault = { line: number; seq: number; what: 'record' | 'head' | 'file'; why: string }
/** What an approval was bound to: gates show it, and its digest is the one that the chain states. */
export type Shown = {
  gate_id: string
  releases: Record<string, unknown>[]
  bound_outputs?: { pointer: string; value: unknown }[]
  /** Not of an operation that began before it was bound. */
  asked?: { requester: { name: string }; reason: string; ticket: string | null }
}
/** `signed`: votes that carry the signature of a passkey, each of which holds. `unsigned`: records of other approvals. */
type Signatures = { signed: number; unsigned: number[] }
type Judged = ({ records: number; head: ExportHead } & Signatures & Recounted) | { fault: EvidenceFault }
export type Verified = (Exclude<Judged, { fault: unknown }> & { shown: Shown[] }) | { fault: EvidenceFault }

/**
 * Returns an evidence chain as a file: one record per line, then the signed head. Each line is canonical JSON, so one
 * content has one text, and every changed byte is noticed.
 */
export const exportEvidence = (records: readonly object[], head: Omit<ExportHead, 'kid'>, key: SigningKey): string => {
  const signed: ExportHead = { ...head, kid: key.kid }
  const header = base64url(canonicalJson({ alg: 'EdDSA', kid: key.kid }))
  const bytes = Buffer.from(`${header}.${base64url(canonicalJson(signed))}`)
  const signature = `${header}..${sign(null, bytes, key.private_key).toString('base64url')}`
  return [...records, { ...signed, signature }].map((line) => `${canonicalJson(line)}\n`).join('')
}

/** Whether a voter has this public key and this name, by a list from elsewhere. */
export type Owns = (voter: string, jwk: object, name: unknown) => boolean

/**
 * Checks a file that exportEvidence made, without any server: form, numbers without gaps, hashes, links from the plan
 * to the head, and the head's signature by one of the keys; with `owns` also that signed votes are by keys of their
 * voters. Also checks by whose right each gate of a started node was passed (recount.ts). Agents must have carried out
 * the saved plans that the approved subjects show. Returns the first line that fails verification, else whether the
 * operation had ended.
 */
export const verifyEvidence = (file: Uint8Array, keys: readonly JsonWebKey[], owns: Owns = () => true): Verified => {
  const all = linesOf(file)
  if (typeof all === 'number') return fault(all, 'file', 'the file does not end with a line of its own')
  const last = all.findLastIndex((line) => !Buffer.from(line).toString().startsWith(BESIDE))
  const lines = all.slice(0, last + 1)
  const verified = verifyLines(lines, keys, owns)
  if ('fault' in verified) return verified
  // A subject that nobody approved has no record that states its digest.
  const shown: Shown[] = []
  for (const [index, bytes] of all.slice(last + 1).entries()) {
    const line = parsed(bytes)
    if (typeof line === 'string') return fault(last + 2 + index, 'file', line)
    const approved = digest(line.approved)
    if (!verified.approved.includes(approved))
      return fault(last + 2 + index, 'file', 'no record approves the content it shows')
    const subject = line.approved as Shown
    const other = verified.executed.find((ran) => ran.digests.includes(approved) && isOther(ran, subject))
    if (other) return fault(last + 2 + index, 'file', `the node ${JSON.stringify(other.id)} ran ${NOT_SHOWN}`)
    shown.push(subject)
  }
  return { ...verified, shown }
}

/** The start of a line that shows an approved subject. */
const BESIDE = '{"approved":'

const NOT_SHOWN = 'another saved plan than the one that this approval shows'
/** Whether a node carried out another saved plan than those that its approval shows as its inputs. */
const isOther = ({ id, content_sha256 }: Ran, { releases, bound_outputs = [] }: Shown): boolean => {
  const inputs = JSON.stringify(releases.find(({ node_id }) => node_id === id)?.inputs ?? null)
  const plans = bound_outputs
    .filter(({ pointer }) => inputs.includes(`"$from":${JSON.stringify(pointer)}`))
    .map(({ value }) => readPointer(value, '/plan/content_sha256'))
    .filter((plan) => plan !== undefined)
  return content_sha256 !== undefined && plans.length > 0 && !plans.includes(content_sha256)
}

const verifyLines = (lines: readonly Uint8Array[], keys: readonly JsonWebKey[], owns: Owns): Judged => {
  let operation_id: unknown
  let prev: unknown
  const signatures: Signatures = { signed: 0, unsigned: [] }
  const recount = createRecount()
  for (const [index, bytes] of lines.slice(0, -1).entries()) {
    const bad = (why: string) => fault(index + 1, 'record', why)
    const record = parsed(bytes)
    if (typeof record === 'string') return bad(record)
    operation_id ??= record.operation_id
    const { hash, ...rest } = record
    if (record.type === 'head') return bad('the head comes before the end')
    if (record.v !== 1) return bad('it is not a record of version 1')
    if (record.seq !== index + 1)
      return bad(`its number is ${JSON.stringify(record.seq)}: a record is missing or was moved`)
    if (record.operation_id !== operation_id) return bad('it belongs to another operation')
    if (digest(rest) !== hash) return bad('its content does not match its hash')
    if (index > 0 && record.prev_hash !== prev) return bad('it does not follow the record before it')
    prev = hash
    const signed = signedVote(record, owns)
    if (typeof signed === 'string') return bad(signed)
    if (signed) signatures.signed += 1
    else if ((record.subject as Fields | undefined)?.decision === 'approve') signatures.unsigned.push(index + 1)
    const unfounded = recount.take(record)
    if (unfounded !== undefined) return bad(unfounded)
  }
  const [first] = lines.length > 1 ? [parsed(lines[0] as Uint8Array)] : []
  return verifyHead(
    lines,
    {
      operation_id,
      prev,
      first: typeof first === 'object' ? first : undefined,
      recounted: { ...recount.result(), ...signatures },
    },
    keys,
  )
}

/** Whether a record is a vote with a valid signature; a text says why it is not valid. */
const signedVote = ({ operation_id, actor, subject }: Fields, owns: Owns): boolean | string => {
  const vote = subject as Fields | undefined
  if (vote?.signature === undefined) return false
  const by = (actor as Fields | undefined)?.name
  const name = `the signature of the vote of ${JSON.stringify(by)} on ${JSON.stringify(vote.id)}`
  try {
    const why = voteFault(operation_id, vote)
    if (why !== undefined) return `${name} does not fit: ${why}`
    const { jwk } = vote.signature as VoteSignature
    return owns(String(vote.voter), jwk, by) || `${name} is by a key that the list of people does not name as theirs`
  } catch {
    return `${name} cannot be read`
  }
}

type Chain = { operation_id: unknown; prev: unknown; first: Fields | undefined; recounted: Recounted & Signatures }
const verifyHead = (lines: readonly Uint8Array[], chain: Chain, keys: readonly JsonWebKey[]): Judged => {
  const bad = (why: string) => fault(lines.length, 'head', why)
  const last = parsed(lines.at(-1) as Uint8Array)
  if (typeof last === 'string') return bad(last)
  const { signature, ...head } = last
  if (head.type !== 'head') return bad('the head is missing: the file is cut')
  const why = signatureFault(head, signature, keys)
  if (why !== undefined) return bad(why)
  // From here on the head is the server's.
  if (chain.first && chain.first.prev_hash !== head.plan_hash)
    return fault(1, 'record', 'it does not begin at the plan that the head names')
  if (head.seq !== lines.length - 1)
    return bad(`it names ${JSON.stringify(head.seq)} records, but ${lines.length - 1} come before it`)
  if (chain.first && head.operation_id !== chain.operation_id) return bad('it belongs to another operation')
  if (head.hash !== (chain.first ? chain.prev : head.plan_hash)) return bad('it names another last record')
  return { records: lines.length - 1, head: head as ExportHead, ...chain.recounted }
}

const signatureFault = (head: Fields, signature: unknown, keys: readonly JsonWebKey[]): string | undefined => {
  const parts = typeof signature === 'string' ? signature.split('.') : []
  const [header = '', payload, value = ''] = parts
  if (parts.length !== 3 || payload !== '' || !isExact(header) || !isExact(value)) return 'it is not signed'
  if (header !== base64url(canonicalJson({ alg: 'EdDSA', kid: head.kid }))) return 'its signature is of another kind'
  const jwk = keys.find(({ kid }) => kid === head.kid)
  if (!jwk) return `the key ${JSON.stringify(head.kid)} was not given`
  const bytes = Buffer.from(`${header}.${base64url(canonicalJson(head))}`)
  return verify(null, bytes, createPublicKey({ key: jwk, format: 'jwk' }), Buffer.from(value, 'base64url'))
    ? undefined
    : 'its signature is not valid'
}

const base64url = (text: string): string => Buffer.from(text).toString('base64url')
/** Some bytes have several base64 texts; only one of them is accepted. */
const isExact = (text: string): boolean => Buffer.from(text, 'base64url').toString('base64url') === text

const fault = (line: number, what: EvidenceFault['what'], why: string) => ({ fault: { line, seq: line, what, why } })

/** Returns the lines, or the number of the line that is not terminated. */
const linesOf = (file: Uint8Array): Uint8Array[] | number => {
  const lines: Uint8Array[] = []
  let start = 0
  for (let at = file.indexOf(10); at >= 0; at = file.indexOf(10, start)) {
    lines.push(file.subarray(start, at))
    start = at + 1
  }
  return start === file.length && lines.length > 0 ? lines : lines.length + 1
}

/** Parses a line of canonical JSON, or returns its fault. */
const parsed = (bytes: Uint8Array): Fields | string => {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    const value: unknown = JSON.parse(text)
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'it is not an object'
    return canonicalJson(value) === text ? (value as Fields) : 'it is not canonical JSON'
  } catch {
    return 'it is not JSON'
  }
}
