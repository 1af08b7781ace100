import { createHash, createPrivateKey, generateKeyPairSync, type JsonWebKey, type KeyObject } from 'node:crypto'
import { ConfigError, readJsonFile } from '../config.ts'
import { audienceOf, SERVICE_SCOPES } from './scopes.ts'

/** A public Ed25519 key as stored in the registry. */
export type ServiceJwk = { kty: 'OKP'; crv: 'Ed25519'; x: string; kid: string }
/** One caller of the registry file `AUTH__SERVICES__FILE`. */
export type RegistryEntry = { keys: ServiceJwk[]; audiences: string[]; scopes: string[] }
export type PrivateKey = { kid: string; private_key: KeyObject }

/** Returns the RFC 7638 thumbprint of an Ed25519 key, which is its key id. */
export const thumbprintOf = ({ crv, kty, x }: JsonWebKey): string =>
  createHash('sha256').update(JSON.stringify({ crv, kty, x })).digest('base64url')

/** Generates an Ed25519 key: the private JWK goes to a key file of mode 0600, the public one to the registry. */
export const createServiceKey = (): { private_jwk: JsonWebKey & { kid: string }; public_jwk: ServiceJwk } => {
  const jwk = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' })
  const kid = thumbprintOf(jwk)
  return { private_jwk: { ...jwk, kid }, public_jwk: { kty: 'OKP', crv: 'Ed25519', x: jwk.x ?? '', kid } }
}

/** Returns the registry entry of one of our own apps, with the audiences and scopes of SERVICE_SCOPES. */
export const registryEntryOf = (name: string, keys: ServiceJwk[]): RegistryEntry => {
  const targets = Object.entries(SERVICE_SCOPES[name] ?? {})
  return {
    keys,
    audiences: targets.map(([target]) => audienceOf(target)),
    scopes: [...new Set(targets.flatMap(([, scopes]) => scopes))].sort(),
  }
}

/** Reads an Ed25519 key file (a private JWK). An invalid file is a ConfigError that names variable and file. */
export const readKeyFile = (variable: string, path: string): PrivateKey => {
  const jwk = readJsonFile<JsonWebKey>(variable, path)
  try {
    if (jwk.kty !== 'OKP' || jwk.crv !== 'Ed25519') throw new Error('it is not an Ed25519 key')
    return { kid: thumbprintOf(jwk), private_key: createPrivateKey({ key: jwk, format: 'jwk' }) }
  } catch (error) {
    throw new ConfigError(`${variable} names ${path}, which is not a private key: ${(error as Error).message}`)
  }
}
