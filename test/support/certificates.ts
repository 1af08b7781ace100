import { createPublicKey, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'

/** A DER value: tag, length, content. */
const der = (tag: number, ...parts: Uint8Array[]): Buffer => {
  const content = Buffer.concat(parts)
  const { length } = content
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}
const sequence = (...parts: Uint8Array[]) => der(0x30, ...parts)
const oid = (...bytes: number[]) => der(0x06, Buffer.from(bytes))
const time = (at: Date) => der(0x18, Buffer.from(`${at.toISOString().replace(/[-:T]/g, '').slice(0, 14)}Z`))
const nameOf = (common: string) => sequence(der(0x31, sequence(oid(0x55, 0x04, 0x03), der(0x0c, Buffer.from(common)))))
const extension = (last: number, value: Uint8Array) => sequence(oid(0x55, 0x1d, last), der(0x04, value))
const ED25519 = sequence(oid(0x2b, 0x65, 0x70))
const DAY_MS = 86_400_000

type Issuer = { name: string; key: KeyObject }
type Life = { expired?: boolean; early?: boolean; days?: number }
/** The last number of an extended key usage (RFC 5280): without one, a certificate is for every use. */
const USES = { server: 1, client: 2 } as const
type Use = { use?: keyof typeof USES }
type Asked = { name: string; public_key: KeyObject; issuer: Issuer; dns?: string; ca?: boolean } & Life & Use

/** The loopback addresses. */
const ADDRESSES = [Buffer.from([127, 0, 0, 1]), Buffer.concat([Buffer.alloc(15), Buffer.from([1])])]

/** An X.509 certificate (RFC 5280) of an Ed25519 key, for the loopback addresses and one DNS name. */
const certificate = ({ name, public_key, issuer, dns, ca = false, use, ...life }: Asked): string => {
  const { expired = false, early = false, days = 1 } = life
  const now = Date.now()
  const names = dns ? sequence(der(0x82, Buffer.from(dns)), ...ADDRESSES.map((one) => der(0x87, one))) : undefined
  const extensions = [
    extension(0x13, ca ? sequence(der(0x01, Buffer.from([255]))) : sequence()),
    ...(names ? [extension(0x11, names)] : []),
    ...(use ? [extension(0x25, sequence(oid(0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, USES[use])))] : []),
  ]
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ED25519,
    nameOf(issuer.name),
    sequence(
      time(new Date(now + (early ? DAY_MS / 2 : -2 * DAY_MS))),
      time(new Date(now + (expired ? -DAY_MS : days * DAY_MS))),
    ),
    nameOf(name),
    public_key.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(...extensions)),
  )
  const signature = der(0x03, Buffer.from([0]), sign(null, body, issuer.key))
  const base64 = sequence(body, ED25519, signature)
    .toString('base64')
    .replace(/.{64}(?=.)/g, '$&\n')
  return `-----BEGIN CERTIFICATE-----\n${base64}\n-----END CERTIFICATE-----\n`
}

export type Identity = { cert: string; key: string; ca: string }

/**
 * An authority that lives as long as the test, by itself or below another: `issue` makes a certificate and its key for
 * this DNS name.
 */
export const createAuthority = ({ above, ...life }: { above?: { issuer: Issuer } } & Life = {}) => {
  const { privateKey: key } = generateKeyPairSync('ed25519')
  const issuer = { name: above ? 'authority below it' : 'test authority', key }
  const public_key = createPublicKey(key)
  const ca = certificate({ name: issuer.name, public_key, issuer: above?.issuer ?? issuer, ca: true, ...life })
  return {
    ca,
    issuer,
    issue: (dns: string, more: Life & Use = {}): Identity => {
      const pair = generateKeyPairSync('ed25519')
      return {
        cert: certificate({ name: dns, public_key: pair.publicKey, issuer, dns, ...more }),
        key: pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
        ca,
      }
    },
  }
}
