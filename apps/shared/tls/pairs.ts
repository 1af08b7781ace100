import { createPrivateKey, X509Certificate } from 'node:crypto'
import { ConfigError, readTextFile } from '../config.ts'
import type { Telemetry } from '../telemetry.ts'

export type Pair = { cert: string; key: string }
export type Prefix = 'AUTH__TLS' | 'SIGNALBOX__TLS' | 'GATEWAY__TLS' | 'RELAY__SIEM'

/** Reads the PEM file of a certificate or key. Throws a ConfigError that names its setting. */
export const readPem = (variable: string, path: string): string => {
  const text = readTextFile(variable, path)
  try {
    if (variable.endsWith('KEY_FILE')) createPrivateKey(text)
    else new X509Certificate(text)
  } catch (error) {
    const why = (error as Error).message
    throw new ConfigError(`${variable} names ${path}, which is no PEM file of its kind: ${why}.`)
  }
  return text
}

/** Reads the pair of these settings; undefined if neither is set. */
export const readPair = <P extends Prefix>(
  prefix: P,
  config: { [K in `${P}__CERT_FILE` | `${P}__KEY_FILE`]?: string },
): Pair | undefined => {
  const names = [`${prefix}__CERT_FILE`, `${prefix}__KEY_FILE`] as const
  const [cert_file, key_file] = names.map((name) => config[name])
  if (!cert_file && !key_file) return undefined
  if (!cert_file || !key_file) throw new ConfigError(`${names.join(' and ')} belong together: set both or none.`)
  return { cert: readPem(names[0], cert_file), key: readPem(names[1], key_file) }
}

/** No peer would accept this pair, so every call would fail later. Throws a ConfigError that names its settings. */
export const refuseUseless = (prefix: Prefix, { cert, key }: Pair): void => {
  const own = new X509Certificate(cert)
  if (!own.checkPrivateKey(createPrivateKey(key)))
    throw new ConfigError(`${prefix}__KEY_FILE is not the key of the certificate in ${prefix}__CERT_FILE.`)
  if (Date.parse(own.validTo) < Date.now())
    throw new ConfigError(`The certificate in ${prefix}__CERT_FILE expired on ${own.validTo}: run the set-up again.`)
}

const followers = new WeakMap<object, Set<() => void>>()
/** Calls `act` after each change of these texts; returns the function that ends it. */
export const onRenewal = (texts: object, act: () => void): (() => void) => {
  const acts = followers.get(texts) ?? new Set()
  followers.set(texts, acts.add(act))
  return () => void acts.delete(act)
}

/** Changes these texts in place, so that the next connection uses the new ones. Returns whether they differ. */
export const renew = <T extends object>(texts: T, next: { [K in keyof T]?: T[K] }): boolean => {
  const changed = Object.entries(next).some(([name, value]) => texts[name as keyof T] !== value)
  if (!changed) return false
  Object.assign(texts, next)
  for (const act of followers.get(texts) ?? []) act()
  return true
}

/** Certificates that this process uses: how to read their files again, and the present ones by their names. */
type Followed = { renewed: () => boolean; certificates: () => Record<string, string | undefined> }
const followed = new Map<string, Followed>()

/** Adds certificates to those that this process looks at each minute, and reports the life of. */
export const follow = (settings: string, certificates: Followed): void => void followed.set(settings, certificates)

/** Reads every file again. Files that are no valid pair, as between the writes of a renewal, leave the old one. */
export const renewAll = (log: Telemetry['log']): void => {
  for (const [settings, { renewed }] of followed)
    try {
      if (renewed()) log.info(`the certificates of ${settings} are new`)
    } catch (err) {
      log.warn({ err }, `the certificates of ${settings} cannot be renewed: the previous ones stay`)
    }
}

/** Reports how long the certificates that this process uses now are still valid. */
export const measureCertificates = (telemetry: Telemetry): void => {
  const gauge = telemetry.gauge('signalbox_certificate_expiry_seconds', 'Until a certificate ends.', ['name'])
  Object.assign(gauge, {
    collect: () => {
      const present = [...followed.values()].flatMap(({ certificates }) => Object.entries(certificates()))
      for (const [name, pem] of present)
        if (pem) gauge.set({ name }, (Date.parse(new X509Certificate(pem).validTo) - Date.now()) / 1000)
    },
  })
}
