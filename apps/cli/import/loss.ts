/**
 * The fate of a field that no rule reads. `untyped` is kept as it is, without a type; `computed` repeats other fields
 * of the source; `changed` was made to fit; `withheld` is a secret, which is never read; `lost` is in no item.
 */
export type Fate = 'untyped' | 'computed' | 'changed' | 'withheld' | 'lost'
export type FieldFate = { fate: Fate; kind: string; field: string; reason: string; count: number; example: string }
/** Whole rows or objects that become no item: by rule, or `lost`. */
export type LeftOut = { kind: string; reason: string; lost: boolean; count: number }

/** Counts fields by their fate, kind, name and reason. */
export const createLedger = (before?: { fields: FieldFate[]; left_out: LeftOut[] }) => {
  const fields = new Map(
    before?.fields.map((one) => [JSON.stringify([one.fate, one.kind, one.field, one.reason]), { ...one }]),
  )
  const kinds = new Map(before?.left_out.map((one) => [JSON.stringify([one.kind, one.reason, one.lost]), { ...one }]))
  return {
    field: (fate: Fate, kind: string, field: string, reason: string, example: string): void => {
      const key = JSON.stringify([fate, kind, field, reason])
      const known = fields.get(key)
      if (known) known.count += 1
      else fields.set(key, { fate, kind, field, reason, count: 1, example })
    },
    leaveOut: (kind: string, reason: string, { lost = false, count = 1 } = {}): void => {
      const key = JSON.stringify([kind, reason, lost])
      const known = kinds.get(key)
      if (known) known.count += count
      else kinds.set(key, { kind, reason, lost, count })
    },
    fields: (): FieldFate[] => [...fields.values()],
    leftOut: (): LeftOut[] => [...kinds.values()],
  }
}
export type Ledger = ReturnType<typeof createLedger>

/** A `_` stands for any separator or none: `api_key` is also `apiKey`, `api-key` and `API Key`. */
const SECRET = new RegExp(
  [
    'pass(word|phrase|wd)|(^|[^a-z0-9])pass$|secret|token|psk|pre_shared|credential|bcrypt|plaintext|ciphertext',
    'set_sensitive|sensitive_content',
    '(private|api|access|auth|shared|account|client|signing|raw|master|primary|secondary|encryption|instrumentation)_' +
      '(read_only_)?(master_)?key(?!s?_(id|arn|spec|name|source|space|ring|type|algorithm|enabled)s?(?![a-z]))',
    'key_pem|kube_(admin_)?config|connection_string|auth_string|additional_headers',
    '(user|custom)_data(?!base(?!64)|set)|data_json|startup_script|pkcs12|(^|[^a-z0-9])p12|pfx',
  ]
    .join('|')
    .replaceAll('_', '[-_ .]?'),
  'i',
)
/** Whether a field's name suggests that it holds a secret. */
export const isSecretName = (name: string): boolean => SECRET.test(name)
