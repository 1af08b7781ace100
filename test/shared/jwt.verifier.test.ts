import { createHmac, createPublicKey, generateKeyPairSync, sign } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { signToken } from '../../apps/shared/jwt/sign.ts'
import { TokenRejected, type VerifyOptions, verifyToken } from '../../apps/shared/jwt/verifier.ts'
import { accessClaims, b64, forge, ISSUER, NOW, rsaKey, SECONDS, USER } from './support/tokens.ts'

const rsa = rsaKey()
const other = rsaKey()
const KID = 'key-1'
const header = { alg: 'RS256', kid: KID, typ: 'at+jwt' }

const access: VerifyOptions<'access'> = {
  type: 'access',
  keys: (kid) => (kid === KID ? { key: rsa.publicKey } : undefined),
  issuer: ISSUER,
  audience: 'signalbox-api',
  now: NOW,
}
const good = () => forge(rsa.privateKey, header, accessClaims())

const reasonOf = (token: string, options: VerifyOptions<'access' | 'refresh' | 'service'> = access): string => {
  try {
    verifyToken(token, options)
    return 'accepted'
  } catch (error) {
    if (error instanceof TokenRejected) return error.reason
    throw error
  }
}
const claimed = (changes: Record<string, unknown>) => reasonOf(forge(rsa.privateKey, header, accessClaims(changes)))
const headed = (changes: Record<string, unknown>) =>
  reasonOf(forge(rsa.privateKey, { ...header, ...changes }, accessClaims()))

describe('a good token', () => {
  it('gives its claims', () => {
    expect(verifyToken(good(), access)).toMatchObject({ sub: USER, username: 'eva', cm: 'json', amr: ['pwd'] })
  })
  it('may spell typ in any ASCII case and carry further claims', () => {
    expect(headed({ typ: 'AT+JWT' })).toBe('accepted')
    expect(claimed({ tenant: 'x' })).toBe('accepted')
  })
})

describe('a forged token is refused', () => {
  it('signed by another key', () => {
    expect(reasonOf(forge(other.privateKey, header, accessClaims()))).toBe('signature')
  })
  it('with a payload that was changed after signing (ASVS 9.1.1)', () => {
    const [head, , signature] = good().split('.')
    expect(reasonOf(`${head}.${b64(accessClaims({ username: 'ada' }))}.${signature}`)).toBe('signature')
  })
  it('with alg none, a MAC over the public key, or a different algorithm for the same key (ASVS 9.1.2)', () => {
    const none = `${b64({ ...header, alg: 'none' })}.${b64(accessClaims())}`
    expect(reasonOf(`${none}.`)).toBe('malformed')
    expect(reasonOf(`${none}.AAAA`)).toBe('header')
    const pem = rsa.publicKey.export({ type: 'spki', format: 'pem' })
    const input = `${b64({ ...header, alg: 'HS256' })}.${b64(accessClaims())}`
    expect(reasonOf(`${input}.${createHmac('sha256', pem).update(input).digest('base64url')}`)).toBe('header')
    expect(headed({ alg: 'RS512' })).toBe('header')
    expect(headed({ alg: 'PS256' })).toBe('header')
  })
  it('that brings its own key or names a URL for one (ASVS 9.1.3)', () => {
    expect(headed({ jwk: other.jwk })).toBe('header')
    expect(headed({ jku: 'https://evil.example/jwks' })).toBe('header')
    expect(headed({ x5u: 'https://evil.example' })).toBe('header')
    expect(headed({ crit: ['exp'] })).toBe('header')
  })
  it('under a key id that is unknown, not a string, or a path', () => {
    expect(headed({ kid: 'key-2' })).toBe('unknown_key')
    expect(headed({ kid: 1 })).toBe('header')
    expect(headed({ kid: '../../etc/passwd' })).toBe('header')
    expect(headed({ kid: 'x'.repeat(65) })).toBe('header')
  })
  it('verified with a key of another family', () => {
    const ed = generateKeyPairSync('ed25519')
    const options = { ...access, keys: () => ({ key: ed.publicKey }) }
    expect(reasonOf(forge(ed.privateKey, header, accessClaims(), null), options)).toBe('signature')
  })
})

describe('a re-spelled token is refused', () => {
  it('in every other spelling of its signature', () => {
    const token = good()
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    const [head, payload, signature] = token.split('.') as [string, string, string]
    const bytes = Buffer.from(signature, 'base64url')
    const spellings = [...alphabet].map((last) => signature.slice(0, -1) + last).filter((s) => s !== signature)
    const same = spellings.filter((s) => Buffer.from(s, 'base64url').equals(bytes))
    expect(same.length).toBeGreaterThan(0)
    for (const spelling of same) expect(reasonOf(`${head}.${payload}.${spelling}`)).toBe('malformed')
    for (const spelling of [`${signature}=`, `${signature}==`, ` ${signature}`, `${signature}\n`]) {
      expect(reasonOf(`${head}.${payload}.${spelling}`)).toBe('malformed')
    }
  })
  it('with doubled members, white space or escapes in header or payload', () => {
    const claims = JSON.stringify(accessClaims())
    const doubled = `${claims.slice(0, -1)},"sub":"${USER}"}`
    for (const text of [
      doubled,
      claims.replace('{', '{ '),
      claims.replace('"eva"', '"\\u0065va"'),
      `${claims}\n`,
      `\ufeff${claims}`,
    ]) {
      expect(reasonOf(forge(rsa.privateKey, header, text))).toBe('payload')
    }
    for (const text of [
      `{"alg":"none","alg":"RS256","kid":"${KID}","typ":"at+jwt"}`,
      `{"alg":"RS256","kid":"${KID}", "typ":"at+jwt"}`,
    ]) {
      expect(reasonOf(forge(rsa.privateKey, text, accessClaims()))).toBe('header')
    }
  })
  it('with bytes that are not UTF-8, or a payload that is not an object', () => {
    const claims = Buffer.from(JSON.stringify(accessClaims({ username: 'xx' })))
      .toString('latin1')
      .replace('xx', '\xff\xfe')
    const input = `${b64(header)}.${Buffer.from(claims, 'latin1').toString('base64url')}`
    const signature = sign('sha256', Buffer.from(input), rsa.privateKey).toString('base64url')
    expect(reasonOf(`${input}.${signature}`)).toBe('payload')
    for (const text of ['[]', 'null', '"x"', '1', ''])
      expect(['payload', 'malformed']).toContain(reasonOf(forge(rsa.privateKey, header, text)))
  })
  it('with more or fewer parts, or beyond 4096 bytes', () => {
    const token = good()
    expect(reasonOf(`${token}.`)).toBe('malformed')
    expect(reasonOf(`${token}.AAAA`)).toBe('malformed')
    expect(reasonOf(token.split('.').slice(0, 2).join('.'))).toBe('malformed')
    expect(reasonOf('')).toBe('malformed')
    expect(claimed({ pad: 'x'.repeat(4096) })).toBe('malformed')
  })
})

describe('a mistyped token is refused', () => {
  it('of another typ or type: a refresh token is not an access token, by header and by claim (ASVS 9.2.2)', () => {
    expect(headed({ typ: 'rt+jwt' })).toBe('type')
    expect(headed({ typ: 'JWT' })).toBe('type')
    expect(claimed({ type: 'refresh' })).toBe('type')
    expect(claimed({ type: undefined })).toBe('type')
  })
  it('for another issuer or audience (ASVS 9.2.3)', () => {
    expect(claimed({ iss: 'http://localhost:8081' })).toBe('issuer')
    expect(claimed({ aud: 'signalbox-token' })).toBe('audience')
    expect(claimed({ aud: ['signalbox-api'] })).toBe('audience')
    expect(claimed({ aud: undefined })).toBe('audience')
  })
  it('whose subject, session, jti or username has another form', () => {
    expect(claimed({ sub: USER.toUpperCase() })).toBe('subject')
    expect(claimed({ sub: 'svc:gateway' })).toBe('subject')
    expect(claimed({ session_id: 'nope' })).toBe('subject')
    expect(claimed({ jti: 'short' })).toBe('claims')
    expect(claimed({ username: '' })).toBe('claims')
    expect(claimed({ username: 'x'.repeat(129) })).toBe('claims')
    expect(claimed({ username: '😀'.repeat(64) })).toBe('accepted')
  })
  it('without cm, amr or a valid auth_time', () => {
    expect(claimed({ cm: 'cooky' })).toBe('claims')
    expect(claimed({ amr: 'pwd' })).toBe('claims')
    expect(claimed({ auth_time: SECONDS + 1 })).toBe('claims')
    expect(claimed({ auth_time: '0' })).toBe('claims')
  })
})

describe('a mistimed token is refused', () => {
  it('at its exp to the second, without leeway (ASVS 9.2.1)', () => {
    const at = (ms: number) =>
      reasonOf(forge(rsa.privateKey, header, accessClaims()), { ...access, now: new Date((SECONDS + 900) * 1000 + ms) })
    expect(at(-1)).toBe('accepted')
    expect(at(0)).toBe('expired')
  })
  it('with another lifetime, none, or times that are not integers', () => {
    expect(claimed({ exp: SECONDS + 901 })).toBe('lifetime')
    expect(claimed({ exp: SECONDS + 899 })).toBe('lifetime')
    expect(claimed({ exp: undefined })).toBe('lifetime')
    expect(claimed({ exp: 1e300 })).toBe('lifetime')
    expect(claimed({ iat: SECONDS + 0.5, exp: SECONDS + 900.5 })).toBe('lifetime')
    expect(claimed({ iat: String(SECONDS) })).toBe('lifetime')
  })
  it('from a future beyond the skew of 5 s (ASVS 9.2.1)', () => {
    expect(claimed({ iat: SECONDS + 5, exp: SECONDS + 905 })).toBe('accepted')
    expect(claimed({ iat: SECONDS + 6, exp: SECONDS + 906 })).toBe('not_yet_valid')
    expect(claimed({ nbf: SECONDS + 6 })).toBe('not_yet_valid')
    expect(claimed({ nbf: 'now' })).toBe('not_yet_valid')
  })
})

describe('service and execution tokens', () => {
  const ed = generateKeyPairSync('ed25519')
  const service = {
    iss: 'svc:relay',
    sub: 'svc:relay',
    aud: 'session-internal',
    type: 'service' as const,
    iat: SECONDS,
    exp: SECONDS + 300,
    jti: 'A'.repeat(22),
    scope: ['sessions:revoke'],
  }
  const options: VerifyOptions<'service'> = {
    type: 'service',
    keys: () => ({ key: createPublicKey(ed.privateKey), issuer: 'svc:relay' }),
    audience: 'session-internal',
    now: NOW,
  }
  const signed = (changes: object) =>
    reasonOf(signToken('service', { ...service, ...changes }, { kid: 'k', private_key: ed.privateKey }), options)

  it('belong to the caller whose key signed them', () => {
    expect(signed({})).toBe('accepted')
    expect(signed({ iss: 'svc:worker', sub: 'svc:worker' })).toBe('issuer')
    expect(signed({ sub: 'svc:worker' })).toBe('subject')
    expect(signed({ scope: 'sessions:revoke' })).toBe('claims')
    expect(signed({ exp: SECONDS + 301 })).toBe('lifetime')
    expect(signed({ aud: 'identity-internal' })).toBe('audience')
  })
})

describe('any other text', () => {
  it('is refused as TokenRejected, never with another error', () => {
    fc.assert(fc.property(fc.string({ maxLength: 200 }), (text) => reasonOf(text) !== 'accepted'))
    const token = good()
    fc.assert(
      fc.property(fc.nat(token.length - 1), fc.constantFrom(...'Aa0-_.=%', '\0'), (at, char) => {
        const changed = token.slice(0, at) + char + token.slice(at + 1)
        return changed === token || reasonOf(changed) !== 'accepted'
      }),
      { numRuns: 500 },
    )
  })
})
