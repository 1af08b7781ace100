import { createPrivateKey, randomBytes, webcrypto, X509Certificate } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import 'reflect-metadata' // needed by tsyringe, below x509
import * as x509 from '@peculiar/x509'
import { writeWhole } from '../base/record.ts'

const EC = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
const AUTHORITY_DAYS = 1825
const APP_DAYS = 90
const DAY_MS = 86_400_000

type Pair = { cert: x509.X509Certificate; key: webcrypto.CryptoKey }
type Pem = { cert: string; key: string }
/** The PEM files of an authority: our own, or one that a person names. */
export type AuthorityFiles = { cert_file: string; key_file: string }

/** `ca` signs for apps and servers; `temporal-ca` for the callers of Temporal, who may do everything there. */
export const AUTHORITIES = ['ca', 'temporal-ca'] as const
type Role = 'server' | 'client'
/** The names of a certificate, the first also that of its file, and in which roles its owner may show it. */
export type Wanted = { name: string; host?: string | undefined; as: readonly Role[] }

/**
 * Creates these certificates (RFC 5280). Keeps one that has its names and roles and a third of its life left, and any of
 * another authority. Throws if one is due and the key of the authority is missing or not its own.
 */
export const ensureCertificates = async (
  dir: string,
  all: readonly Wanted[],
  given?: AuthorityFiles,
  own_authority: (typeof AUTHORITIES)[number] = 'ca',
): Promise<void> => {
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const trusted_file = join(dir, `${own_authority}.pem`)
  const files = given ?? { cert_file: trusted_file, key_file: join(dir, `${own_authority}.key`) }
  // Without its key, which may be kept elsewhere, the authority is still the one that all trust.
  if (!given && !existsSync(files.cert_file)) writePair(files, await makeAuthority())
  const before = existsSync(trusted_file) ? readFileSync(trusted_file, 'utf8') : ''
  const trusted = given && existsSync(given.cert_file) ? readFileSync(given.cert_file, 'utf8') : before
  let authority: Pair | undefined
  for (const wanted of all) {
    const own = { cert_file: join(dir, `${wanted.name}.pem`), key_file: join(dir, `${wanted.name}.key`) }
    if (isKept(own.cert_file, wanted, { before, trusted })) continue
    authority ??= await readPair(files)
    writePair(own, await issue(authority, wanted))
  }
  // Last, so that an interrupted change of the authority is repeated.
  if (trusted !== before) writeWhole(trusted_file, trusted, 0o644)
}

/** The certificate, of those in a PEM file, that issued this one. */
export const issuerOf = (cert: X509Certificate, authorities: string): X509Certificate | undefined =>
  (authorities.match(/-----BEGIN[\s\S]+?-----END CERTIFICATE-----/g) ?? [])
    .map((pem) => new X509Certificate(pem))
    .find((ca) => cert.checkIssued(ca) && cert.verify(ca.publicKey))

const namesOf = ({ name, host }: Wanted): string[] => [...new Set([name, ...(host ? [host] : [])])]
const usesOf = ({ as }: Wanted): string[] => as.map((role) => x509.ExtendedKeyUsage[`${role}Auth`])

type Authorities = { before: string; trusted: string }
const isKept = (file: string, wanted: Wanted, { before, trusted }: Authorities): boolean => {
  if (!existsSync(file)) return false
  const pem = readFileSync(file, 'utf8')
  const own = new X509Certificate(pem)
  if (!issuerOf(own, before + trusted)) return true // a person's own
  // An authority that gives way takes its certificates along.
  if (!issuerOf(own, trusted)) return false
  const cert = new x509.X509Certificate(pem)
  const held = cert.getExtension(x509.SubjectAlternativeNameExtension)?.names.items.map(({ value }) => value) ?? []
  if (!namesOf(wanted).every((name) => held.includes(name))) return false
  // One that names no use is for all.
  const uses: string[] | undefined = own.keyUsage
  if (uses && usesOf(wanted).sort().join() !== uses.toSorted().join()) return false
  return cert.notAfter.getTime() - Date.now() > (APP_DAYS * DAY_MS) / 3
}

/** Creates an authority. During a rotation two of them are trusted, and OpenSSL finds an issuer by its name alone. */
export const makeAuthority = async (): Promise<Pem> => {
  const keys = await webcrypto.subtle.generateKey(EC, true, ['sign', 'verify'])
  const cert = await x509.X509CertificateGenerator.createSelfSigned({
    name: `CN=Signalbox ${randomBytes(4).toString('hex')}`,
    ...lifeOf(AUTHORITY_DAYS),
    signingAlgorithm: EC,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true),
    ],
  })
  return pemOf(cert, keys.privateKey)
}

const issue = async (authority: Pair, wanted: Wanted): Promise<Pem> => {
  const keys = await webcrypto.subtle.generateKey(EC, true, ['sign', 'verify'])
  const cert = await x509.X509CertificateGenerator.create({
    subject: `CN=${wanted.name}`,
    issuer: authority.cert.subject,
    ...lifeOf(APP_DAYS),
    signingAlgorithm: { ...authority.key.algorithm, hash: 'SHA-256' },
    publicKey: keys.publicKey,
    signingKey: authority.key,
    extensions: [
      new x509.BasicConstraintsExtension(false),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension(usesOf(wanted)),
      new x509.SubjectAlternativeNameExtension(
        namesOf(wanted).map((value) => ({ type: /^[\d.]+$|:/.test(value) ? 'ip' : 'dns', value })),
      ),
    ],
  })
  return pemOf(cert, keys.privateKey)
}

/** It begins an hour ago, because the clocks of hosts differ a little. */
const lifeOf = (days: number) => ({
  notBefore: new Date(Date.now() - 3_600_000),
  notAfter: new Date(Date.now() + days * DAY_MS),
})

const CURVES: Record<string, string> = { prime256v1: 'P-256', secp384r1: 'P-384', secp521r1: 'P-521' }

/** Authorities of others have keys of RSA and of other curves, too. */
const readPair = async ({ cert_file, key_file }: AuthorityFiles): Promise<Pair> => {
  if (!existsSync(key_file))
    throw new Error(`${key_file} is missing, and a certificate is due: bring it back, or name your authority by --ca.`)
  const key = createPrivateKey(readFileSync(key_file))
  const pem = readFileSync(cert_file, 'utf8')
  const authority = new X509Certificate(pem)
  if (!authority.checkPrivateKey(key)) throw new Error(`${key_file} is not the key of ${cert_file}.`)
  if (!authority.ca) throw new Error(`${cert_file} may not issue certificates: it is not of an authority.`)
  if (Date.parse(authority.validTo) < Date.now()) throw new Error(`${cert_file} expired on ${authority.validTo}.`)
  // TLS accepts a chain only up to a root.
  let top: X509Certificate = authority
  while (!top.checkIssued(top)) {
    const next = issuerOf(top, pem)
    if (!next) throw new Error(`${cert_file} lacks the certificate of ${top.issuer}: append the chain up to the root.`)
    top = next
  }
  const algorithm =
    key.asymmetricKeyType === 'rsa'
      ? { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }
      : { ...EC, namedCurve: CURVES[key.asymmetricKeyDetails?.namedCurve ?? ''] ?? 'unknown' }
  return { cert: new x509.X509Certificate(pem), key: key.toCryptoKey(algorithm, false, ['sign']) }
}

const pemOf = async (cert: x509.X509Certificate, key: webcrypto.CryptoKey): Promise<Pem> => {
  const pkcs8 = await webcrypto.subtle.exportKey('pkcs8', key)
  return { key: `${x509.PemConverter.encode(pkcs8, 'PRIVATE KEY')}\n`, cert: `${cert.toString('pem')}\n` }
}

/** The certificate comes last: without it, or with an old one, an interrupted run is repeated. */
const writePair = ({ cert_file, key_file }: AuthorityFiles, { cert, key }: Pem): void => {
  writeWhole(key_file, key)
  writeWhole(cert_file, cert, 0o644)
}
