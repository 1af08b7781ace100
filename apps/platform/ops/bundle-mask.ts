import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { MASK, maskerOf } from '../../shared/data/mask.ts'
import { schemaOf } from '../deploy/reference.ts'

export type Env = Record<string, string>

/**
 * Hides the secrets of an installation wherever they appear in a text: those that its settings hold or name, all keys
 * of its folder, and everything that looks like a secret of a person, a machine or another system.
 */
export const bundleMask = (folder: string, envs: readonly [app: string, env: Env][]): ((text: string) => string) => {
  const known = [
    // A local platform also records the settings of its apps there, in a folder.
    ...filesOf(join(folder, 'keys')).filter((file) => !/services\.json$|keys\/env\//.test(file)),
    ...filesOf(join(folder, 'tls')).filter((file) => file.endsWith('.key')),
  ].flatMap(partsOf)
  const mask = maskerOf([...new Set([...known, ...envs.flatMap(([app, env]) => secretsOf(app, env))])])
  // Shapes first: a known key would hide the first line by which another is recognized.
  return (text) => mask(SHAPES.reduce((masked, [shape, shown]) => masked.replace(shape, shown), text))
}

/** Secrets that no setting has. */
const SHAPES: [RegExp, string][] = [
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----/g, MASK],
  [/\beyJ[\w-]+\.[\w-]+\.[\w-]+/g, MASK],
  [/\b(sbk_|exe_|whsec_)[\w+/=-]{16,}/g, `$1${MASK}`],
  [/\b(Bearer|Basic)\s+[\w+/=.~-]{8,}/gi, `$1 ${MASK}`],
  [/(:\/\/[^\s/:@"\\]*:)[^\s/@"\\]+@/g, `$1${MASK}@`],
  // The secret of a link, as in an invitation, follows its #.
  [/(:\/\/[^\s"\\#]+#)[\w.~-]{20,}/g, `$1${MASK}`],
]

const filesOf = (path: string): string[] => {
  if (!existsSync(path)) return []
  if (!statSync(path).isDirectory()) return [path]
  return readdirSync(path).flatMap((name) => filesOf(join(path, name)))
}

const secretsOf = (app: string, env: Env): string[] =>
  Object.entries(env).flatMap(([name, value]) => {
    // The secrets of identity providers lie beside the file that describes them.
    if (name === 'AUTH__PROVIDERS__FILE') return filesOf(join(dirname(value), 'secrets')).flatMap(partsOf)
    if (/(KEY|TOKEN|PASSWORD|SECRET|REGISTRY|HEADER)S?(_FILE|_DIR)?$/.test(name) && existsSync(value))
      return filesOf(value).flatMap(partsOf)
    if (schemaOf(app)[name]?.secret) return partsIn(value)
    return URL.canParse(value) ? inAddress(new URL(value)) : []
  })

/** Passwords before the @ and among the parameters, and a token before the @ of a web address. */
const inAddress = ({ protocol, username, password, searchParams }: URL): string[] => {
  const named = [...searchParams].flatMap(([name, value]) => (/pass|token|secret|key/i.test(name) ? [value] : []))
  const account = password || (protocol.startsWith('http') ? username : '')
  return [...named, ...(account ? [account, decodeURIComponent(account)] : [])]
}

const LEAST = 8
const partsOf = (file: string): string[] => partsIn(readFileSync(file, 'utf8'))
const partsIn = (text: string): string[] => {
  try {
    return [text.trim(), ...textsIn(JSON.parse(text)).filter((part) => part.length >= LEAST)].flatMap(withAccount)
  } catch {
    return [text.trim()]
  }
}

const textsIn = (value: unknown): string[] =>
  typeof value === 'string' ? [value] : value && typeof value === 'object' ? Object.values(value).flatMap(textsIn) : []

/** A text, and the account in it: `docker login` writes "user:password" in base64. */
const withAccount = (text: string): string[] => {
  const [, password] = /^[\x20-\x7e]+?:([\x20-\x7e]+)$/.exec(Buffer.from(text, 'base64').toString('utf8')) ?? []
  return password ? [text, password] : [text]
}
