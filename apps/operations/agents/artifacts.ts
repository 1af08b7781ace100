import type { Readable } from 'node:stream'
import {
  isExecutionToken,
  markStored,
  type NowStored,
  sizeAnnounced,
  sizeReadable,
} from '../../../db/operations/agents/artifacts.ts'
import { stateFacts, type TimelineEvent } from '../../../db/operations/facts/state.ts'
import type { Actor } from '../../shared/contracts/operations/graph.ts'
import { sha256Hex } from '../../shared/data/digest.ts'
import { AppError } from '../../shared/errors.ts'
import { audienceOf } from '../../shared/service/scopes.ts'
import { verifyServiceToken } from '../../shared/service/tokens.ts'
import type { Uses } from '../deps.ts'
import { tokenRefused } from './executions.ts'

/** Who brings the bytes of announced artifacts: an execution token's bearer only its attempt's, a service any. */
export type Bringer = { actor: Actor; token_sha256: string | undefined }

const SCOPE = 'artifacts:write'

export const bringerOf = async (deps: Uses<'db' | 'trust'>, authorization: string | undefined): Promise<Bringer> => {
  const [, bearer = ''] = /^bearer (\S+)$/i.exec(authorization ?? '') ?? []
  if (bearer.startsWith('exe_')) {
    const token_sha256 = sha256Hex(bearer)
    if (!(await isExecutionToken(deps.db, token_sha256))) throw tokenRefused()
    return { actor: { kind: 'executor', id: 'agent', name: 'agent' }, token_sha256 }
  }
  const service = serviceOf(deps, bearer)
  if (!service.scopes.has(SCOPE))
    throw new AppError('policy_denied', 'permission_missing', `This needs the scope ${SCOPE}.`, {
      extra: { scope: SCOPE },
    })
  return { actor: { kind: 'service', id: `svc:${service.name}`, name: service.name }, token_sha256: undefined }
}

const serviceOf = ({ trust }: Uses<'trust'>, bearer: string) => {
  try {
    return verifyServiceToken(trust.registry, audienceOf('operations'), bearer)
  } catch (error) {
    if (error instanceof AppError && error.category === 'internal_error') throw error
    throw tokenRefused()
  }
}

/**
 * Takes the bytes of an announced artifact (operations.md 6.4). It stores them under their digest once they are
 * complete, and only if they match the announcement. The same bytes again have no effect.
 */
export const takeArtifact = async (
  deps: Uses<'artifacts' | 'db'>,
  bringer: Bringer,
  sha256: string,
  bytes: Readable,
  request_id: string,
) => {
  const size = await sizeAnnounced(deps.db, sha256, bringer.token_sha256)
  if (size === undefined)
    throw new AppError('not_found', 'artifact', 'No artifact with this digest has been announced.', {
      hint: 'Name it in `artifacts` of an execution result first.',
    })
  const known = await deps.artifacts.has(sha256, size)
  if (!(await deps.artifacts.put(sha256, size, bytes)))
    throw new AppError(
      'execution_result_rejected',
      'artifact_digest_mismatch',
      `These are not the ${size} bytes that were announced.`,
    )
  await deps.db.transaction(async (tx) => {
    const stored = Map.groupBy(await markStored(tx, sha256, size), ({ operation_id }) => operation_id)
    for (const [operation_id, rows] of stored)
      await stateFacts(tx, operation_id, { request_id, events: rows.map((row) => storedEvent(row, sha256, bringer)) })
  })
  return { sha256, size, duplicate: known }
}

/** Returns the bytes that an earlier attempt of the same operation made, such as a saved plan. */
export const giveArtifact = async (
  { artifacts, db }: Uses<'artifacts' | 'db'>,
  { token_sha256 }: Bringer,
  sha256: string,
): Promise<Readable> => {
  const size = token_sha256 === undefined ? undefined : await sizeReadable(db, sha256, token_sha256)
  const bytes = size === undefined ? undefined : await artifacts.read(sha256, size)
  if (!bytes) throw new AppError('not_found', 'artifact', 'No attempt of this operation has uploaded these bytes.')
  return bytes
}

const storedEvent = (
  { node_id, attempt, artifact_id, name }: NowStored,
  sha256: string,
  { actor }: Bringer,
): TimelineEvent => ({
  type: 'artifact.stored',
  actor,
  node_id,
  data: { artifact_id, name, attempt, sha256 },
  evidence: {
    kind: 'artifact',
    statement: `The artifact ${name} of node ${node_id} (attempt ${attempt}) is stored`,
    subject: { type: 'artifact', id: artifact_id },
    subject_digest: `sha256:${sha256}`,
  },
})
