import { readFileSync } from 'node:fs'
import Type, { type Static } from 'typebox'
import { Closed } from '../../../shared/contracts/shapes.ts'
import { compileCel } from '../../../shared/expressions/cel.ts'

const Variables = Type.Record(
  Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]*$' }),
  Closed({ file: Type.String({ pattern: '^/', maxLength: 1000 }) }),
)

/** Environment variables for jobs that name the credential. Of `env` each value comes from a file; of `files` it is the path of a copy. */
export const Credentials = Type.Record(
  Type.String({ pattern: '^[a-z][a-z0-9-]{0,62}$' }),
  Closed({
    jobs: Type.Array(Type.String(), { minItems: 1 }),
    /** CEL over `with`, the inputs of the job: without a true answer, the job does not get the credential. */
    when: Type.Optional(Type.String({ minLength: 1 })),
    env: Type.Optional(Variables),
    files: Type.Optional(Variables),
  }),
)
export type Credentials = Static<typeof Credentials>
/** What a job gets: values of variables, and the content of files. */
export type Credential = { env: Record<string, string>; files: Record<string, Buffer> }

/** Every file of a credential, by its place. */
export const filesOfCredentials = (credentials: Credentials = {}): (readonly [place: string, path: string])[] =>
  Object.entries(credentials).flatMap(([name, { env, files }]) =>
    Object.entries({ env, files }).flatMap(([kind, variables = {}]) =>
      Object.entries(variables).map(([key, { file }]) => [`credentials/${name}/${kind}/${key}`, file] as const),
    ),
  )

/** The value of a name that says it is secret, and the password in a URL. Public words beside them stay legible. */
const SECRET =
  /(?:secret|token|pass|pwd|private|credential|key|\bauth|_auth)(?![\w.-]*(?:ur[il]|endpoint|file|path|type|expir\w*|name)\b)[\w.-]*["']?[ \t]*[=:][ \t]*(?:"([^"\n]+)"|'([^'\n]+)'|(([^\s"',]+)[^"',\n]*))|:\/\/[^\s:@/]*:([^\s@/]+)@/gi
/** "name = value", "name: value", a section, and the edge of a block say nothing secret as a whole. */
const PUBLIC = /^(?:(?:- |export )?["']?[\w.-]+["']?\s*(?:=\s*[^\s=]|:(?:\s|$))|\[[^\]]*\]$|-----)/

/** The body of these is public too. */
const PUBLISHED = /-----BEGIN [A-Z ]*(?:CERTIFICATE|PUBLIC KEY)-----.*?-----END/gs

const secretsOf = (text: string): string[] => {
  const named = [...text.matchAll(SECRET)].flatMap(([, ...values]) => values.map((value) => value?.trim() ?? ''))
  const whole = text.trim()
  const lines = whole.replace(PUBLISHED, '').split(/\s*\n\s*/)
  const unnamed = lines.filter((line) => !PUBLIC.test(line))
  return [whole.includes('\n') ? '' : whole, ...[...named, ...unnamed].filter(({ length }) => length >= 8)]
}

/** Values of a credential that logs and results must not show. Masking shorter ones would garble ordinary words. */
export const secretsIn = ({ env, files }: Credential): string[] => {
  const values = [...Object.values(env), ...Object.values(files).flatMap((bytes) => secretsOf(String(bytes)))]
  return values.filter(({ length }) => length >= 4)
}

const compiled = (name: string, when: string | undefined) => {
  try {
    return when === undefined ? undefined : compileCel(when, ['with'])
  } catch (error) {
    throw new Error(`/credentials/${name}/when: ${(error as Error).message}`)
  }
}

/** Throws for a condition that is not sound. */
export const checkConditions = (credentials: Credentials = {}): void => {
  for (const [name, { when }] of Object.entries(credentials)) compiled(name, when)
}

/** Whether the inputs meet the condition of a credential; one that cannot be evaluated on them is not met. */
const isMet = (name: string, when: string | undefined, inputs: Record<string, unknown>): boolean => {
  try {
    return compiled(name, when)?.test({ with: inputs }) ?? true
  } catch {
    return false
  }
}

/** The credential that this job may use; a string says why it must not. */
export const credentialOf = (
  { credentials = {} }: { credentials?: Credentials },
  inputs: Record<string, unknown>,
  job: string,
): Credential | string => {
  if (inputs.credentials === undefined) return { env: {}, files: {} }
  const name = String(inputs.credentials)
  const found = Object.hasOwn(credentials, name) ? credentials[name] : undefined
  if (!found?.jobs.includes(job)) return `The agent's file does not allow ${job} to use the credential "${name}".`
  if (!isMet(name, found.when, inputs))
    return `The agent's file gives the credential "${name}" only where ${found.when}; the inputs of ${job} do not meet that.`
  const read = ([key, { file }]: [string, { file: string }]) => [key, readFileSync(file)] as const
  try {
    const env = Object.entries(found.env ?? {}).map(read)
    return {
      env: Object.fromEntries(env.map(([key, bytes]) => [key, bytes.toString().replace(/\n$/, '')])),
      files: Object.fromEntries(Object.entries(found.files ?? {}).map(read)),
    }
  } catch (error) {
    return `The credential "${name}" cannot be read: ${(error as NodeJS.ErrnoException).code}.`
  }
}
