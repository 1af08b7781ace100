import type { CredentialRequest } from '../../shared/contracts/identity/machines.ts'
import { AppError } from '../../shared/errors.ts'
import { publicKeyOf } from '../../shared/jwt/sound.ts'
import { isNetwork } from '../../shared/web/networks.ts'
import type { IdentityDeps } from '../deps.ts'

export const invalid = (code: 'schema_violation' | 'issuer_not_trusted', detail: string, hint: string) =>
  new AppError('validation_error', code, detail, { status: 422, hint })

export const refuseNetworks = (networks: readonly string[]) => {
  const wrong = networks.find((network) => !isNetwork(network))
  return wrong === undefined
    ? undefined
    : invalid(
        'schema_violation',
        `${wrong} is not a network.`,
        'Send networks such as 203.0.113.0/24 or 2001:db8::/32.',
      )
}

const ALG = { EdDSA: 'ed25519', ES256: 'ec', RS256: 'rsa' } as const

export const refuseJwk = (jwk: NonNullable<CredentialRequest['jwk']>) => {
  try {
    if (publicKeyOf(jwk as never).asymmetricKeyType === ALG[jwk.alg]) return undefined
  } catch {}
  return invalid(
    'schema_violation',
    'The jwk is not a public key of its algorithm.',
    'Send an Ed25519, P-256 or RSA key (2048 to 4096 bits, exponent 65537).',
  )
}

/**
 * Claims that survive a rename: others can take over repository names. Servers of a company sign under issuers of their
 * own, so a trust is of the kind whose claims or subjects it names.
 */
const KINDS = [
  {
    issuer: 'https://token.actions.githubusercontent.com',
    names: /^(repository(_\w+)?$|job_workflow|workflow|environment$|ref$|enterprise)/,
    subject: /^(repo|repository\w*|job_workflow_ref|environment|ref|context|enterprise\w*):/,
    pinned: [
      ['repository_id', 'repository_owner_id', 'environment'],
      ['repository_id', 'repository_owner_id', 'job_workflow_ref', 'ref'],
    ],
  },
  {
    issuer: 'https://gitlab.com',
    names: /^(project_|namespace_|root_namespace|ref_|ci_config|pipeline_source$|environment$|ref$)/,
    subject: /^(project|namespace)_\w+:/,
    pinned: [['project_id', 'namespace_id', 'ref_protected']],
  },
]

export const refuseTrust = ({ issuers }: IdentityDeps, { issuer, claims }: NonNullable<CredentialRequest['trust']>) => {
  if (!issuers.has(issuer))
    return invalid(
      'issuer_not_trusted',
      `This installation does not trust ${issuer}.`,
      'The deployer adds it to AUTH__MACHINES__ISSUERS.',
    )
  const known = KINDS.filter((kind) => kind.issuer === issuer)
  const alike = KINDS.filter(
    ({ names, subject }) => subject.test(claims.sub ?? '') || Object.keys(claims).some((name) => names.test(name)),
  )
  const sets = (known.length > 0 ? known : alike).flatMap(({ pinned }) => pinned)
  const wanted = sets.map((names) => names.join(', ')).join('; or ')
  if (sets.length > 0 && !sets.some((names) => names.every((name) => name in claims)))
    return invalid(
      'schema_violation',
      'The trust pins no claim that survives a rename.',
      `Name these claims: ${wanted}.`,
    )
  return claims.ref_protected === undefined || claims.ref_protected === 'true'
    ? undefined
    : invalid('schema_violation', 'The trust accepts jobs of unprotected branches.', 'Send ref_protected as "true".')
}
