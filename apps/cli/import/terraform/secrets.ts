import type { Collected } from '../collect.ts'
import { type Fields, isEmpty } from '../items.ts'

/** Resource types that exist to hold a secret, whatever the provider calls the attribute. */
const SECRET_TYPES =
  /^(random_(password|string|bytes)|(vault|onepassword|bitwarden|doppler|sops|infisical|akeyless)_.*|cloudinit_config|template_cloudinit_config|.*_secrets?(_.*)?|.*_sensitive_.*|.*_password|.*_key_vault_certificate|(gitlab|github|tfe|bitbucket)_.*variable|.*_api_key|.*_(environment|context|project)_variable)$/
/** Types whose names sound like it, but which only name secrets and say who may read them. */
const NAMES_SECRETS =
  /^(aws_secretsmanager_secret|google_secret_manager_(regional_)?secret|vault_(policy|mount)|.*_(iam_(member|binding|policy)|secret_policy|secret_rotation))$/
/** Members of these types that name a secret. */
export const plainNames = (type: string): { plain?: RegExp } =>
  NAMES_SECRETS.test(type) ? { plain: /^secret_(id|arn)$/ } : {}
/** These show the generated value as their id too. */
const GENERATED = /^random_/
const KEPT = /^(id|name|arn|path|region|location|project|namespace|key_vault_id|tags|tags_all|labels|effective_labels)$/

const isSecret = (type: string, values: Fields): boolean =>
  (SECRET_TYPES.test(type) && !NAMES_SECRETS.test(type)) ||
  (type === 'aws_ssm_parameter' && values.type === 'SecureString') ||
  (type === 'kubectl_manifest' && values.kind === 'Secret')

/**
 * The values without secrets: without the members that the state marks, and of a type that holds secrets only what
 * names it. Older states and imported resources have no marks.
 */
export const withoutSecrets = (
  type: string,
  values: Fields,
  sensitive: readonly string[],
  { ledger, note }: Collected,
): Fields => {
  const secret = isSecret(type, values)
  if (secret && sensitive.length === 0)
    note(`the state marks no sensitive values of ${type}: only ids and names of this type are read`)
  const reasonOf = (member: string): string | undefined => {
    if (sensitive.includes(member)) return 'the state marks it as sensitive'
    const named = KEPT.test(member) && !(GENERATED.test(type) && member === 'id')
    return secret && !named ? 'its type holds secrets' : undefined
  }
  return Object.fromEntries(
    Object.entries(values).filter(([member, value]) => {
      const reason = reasonOf(member)
      if (reason !== undefined && !isEmpty(value)) ledger.field('withheld', type, member, reason, type)
      return reason === undefined
    }),
  )
}
