import { randomBytes, webcrypto } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import 'reflect-metadata' // needed by tsyringe, below x509
import * as x509 from '@peculiar/x509'

const EC = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
const AUTHORITY_DAYS = 1825
const APP_DAYS = 90
const DAY_MS = 86_400_000

type Pair = { cert: x509.X509Certificate; key: webcrypto.CryptoKey }
/** The PEM files of an authority: our own, or one that a person names. */
export type AuthorityFiles = { cert_file: string; key_file: string }

/**
 * Creates a certificate (RFC 5280) for each app and server, by its name and, if known, its host, for both client and
 * server use. Keeps a certificate that has these names and a third of its life left.
 */
export const ensureCertificates = async (
  dir: string,
  hosts: ReadonlyMap<string, string | undefined>,
  given: AuthorityFiles | undefined,
): Promise<void> => {
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const files = given ?? { cert_file: join(dir, 'ca.pem'), key_file: join(dir, 'ca.key') }
  if (!given && !existsSync(files.key_file)) await makeAuthority(files)
  const authority = await readPair(files)
  if (given) writeFileSync(join(dir, 'ca.pem'), readFileSync(given.cert_file))
  for (const [name, host] of hosts) {
    const own = { cert_file: join(dir, `${name}.pem`), key_file: join(dir, `${name}.key`) }
    const names = [...new Set([name, ...(host ? [host] : [])])]
    if (!isFresh(own.cert_file, names)) await issue(own, authority, names)
  }
}

const isFresh = (file: string, names: readonly string[]): boolean => {
  if (!existsSync(file)) return false
  const cert = new x509.X509Certificate(readFileSync(file, 'utf8'))
  const held = cert.getExtension(x509.SubjectAlternativeNameExtension)?.names.items.map(({ value }) => value) ?? []
  if (!names.every((name) => held.includes(name))) return false
  return cert.notAfter.getTime() - Date.now() > (APP_DAYS * DAY_MS) / 3
}

/** Creates an authority. During a rotation two of them are trusted, and OpenSSL finds an issuer by its name alone. */
export const makeAuthority = async (files: AuthorityFiles): Promise<void> => {
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
  await writePair(files, cert, keys.privateKey)
}

const issue = async (files: AuthorityFiles, authority: Pair, names: readonly string[]): Promise<void> => {
  const keys = await webcrypto.subtle.generateKey(EC, true, ['sign', 'verify'])
  const cert = await x509.X509CertificateGenerator.create({
    subject: `CN=${names[0]}`,
    issuer: authority.cert.subject,
    ...lifeOf(APP_DAYS),
    signingAlgorithm: EC,
    publicKey: keys.publicKey,
    signingKey: authority.key,
    extensions: [
      new x509.BasicConstraintsExtension(false),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth, x509.ExtendedKeyUsage.clientAuth]),
      new x509.SubjectAlternativeNameExtension(
        names.map((value) => ({ type: /^[\d.]+$|:/.test(value) ? 'ip' : 'dns', value })),
      ),
    ],
  })
  await writePair(files, cert, keys.privateKey)
}

/** It begins an hour ago, because the clocks of hosts differ a little. */
const lifeOf = (days: number) => ({
  notBefore: new Date(Date.now() - 3_600_000),
  notAfter: new Date(Date.now() + days * DAY_MS),
})

const readPair = async ({ cert_file, key_file }: AuthorityFiles): Promise<Pair> => {
  const [der = new ArrayBuffer(0)] = x509.PemConverter.decode(readFileSync(key_file, 'utf8'))
  return {
    cert: new x509.X509Certificate(readFileSync(cert_file, 'utf8')),
    key: await webcrypto.subtle.importKey('pkcs8', der, EC, false, ['sign']),
  }
}

const writePair = async (
  files: AuthorityFiles,
  cert: x509.X509Certificate,
  key: webcrypto.CryptoKey,
): Promise<void> => {
  const pkcs8 = await webcrypto.subtle.exportKey('pkcs8', key)
  writeFileSync(files.key_file, `${x509.PemConverter.encode(pkcs8, 'PRIVATE KEY')}\n`, { mode: 0o600 })
  writeFileSync(files.cert_file, `${cert.toString('pem')}\n`)
}
