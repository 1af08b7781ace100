import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, SignJWT } from 'jose'
import { send } from '../lib/load.ts'
import { besideRefresh, type Calls } from './beside.ts'
import { type Bench, json, type Row, type Tokens } from './clients.ts'

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const ASSERTION = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
const USER = 'urn:ietf:params:scim:schemas:core:2.0:User'
const PATCH = 'urn:ietf:params:scim:api:messages:2.0:PatchOp'
const AUDIENCE = 'https://signalbox.bench'
const LIFE_S = 200

/** A CI system in the load generator's process: its keys, and a job's claims. */
export const startCi = async () => {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const keys = [{ ...(await exportJWK(publicKey)), kid: 'ci', alg: 'RS256', use: 'sig' }]
  const server = createServer((req, res) => {
    const body = req.url?.endsWith('/jwks') ? { keys } : { issuer, jwks_uri: `${issuer}/jwks` }
    res.setHeader('content-type', 'application/json').end(JSON.stringify(body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const job = () =>
    signed({ project_id: '7' }, { iss: issuer, sub: 'job', aud: AUDIENCE, alg: 'RS256', kid: 'ci' }, privateKey)
  return { issuer, job, stop: () => server.close() }
}
export type Ci = Awaited<ReturnType<typeof startCi>>

const signed = (
  claims: object,
  { iss, sub, aud, alg, kid }: Record<'iss' | 'sub' | 'aud' | 'alg' | 'kid', string>,
  key: Parameters<SignJWT['sign']>[0],
) =>
  new SignJWT({ ...claims })
    .setProtectedHeader({ alg, kid })
    .setIssuer(iss)
    .setSubject(sub)
    .setAudience(aud)
    .setJti(randomUUID())
    .setIssuedAt()
    .setExpirationTime(`${LIFE_S}s`)
    .sign(key)

/** Creates machines and their credentials as an administrator does. */
const administer = ({ gateway }: Bench, { access_token }: Tokens) => {
  const post = async (path: string, body: object, method = 'POST') => {
    const headers = { ...json, authorization: `Bearer ${access_token}`, 'idempotency-key': randomUUID() }
    const reply = await send(gateway, { method, path: `/api/v1/${path}`, headers, body: JSON.stringify(body) })
    if (reply.status !== 201) throw new Error(`${path}: ${reply.status} ${reply.text}`)
    return JSON.parse(reply.text)
  }
  const machine = async (name: string, owner: string): Promise<string> =>
    (await post('admin/machines', { name, owners: [owner] })).id
  const credential = (id: string, body: object) =>
    post(`admin/machines/${id}/credentials`, { name: 'bench', permissions: ['identity:read'], ...body })
  return { post, machine, credential }
}

/** The ways in which a machine gets a token, and the requests of a directory, alongside refreshes. */
export const benchMachines =
  (ci: Ci) =>
  async (bench: Bench, sessions: Tokens[], administrator: Tokens): Promise<Row[]> => {
    const { gateway } = bench
    const { machine, credential, post } = administer(bench, administrator)
    const me = {
      method: 'GET',
      path: '/api/v1/users/me',
      headers: { authorization: `Bearer ${administrator.access_token}` },
    }
    const owner = JSON.parse((await send(gateway, me)).text).id
    const id = await machine('bench', owner)
    await post('admin/grants', { subject_type: 'user', subject_id: id, role: 'auditor' })
    const own = generateKeyPairSync('ed25519')
    const { key } = await credential(id, { kind: 'key' })
    const jwk = { ...(await exportJWK(own.publicKey)), kid: 'own', alg: 'EdDSA' }
    await credential(id, { kind: 'jwk', jwk })
    const trust = { issuer: ci.issuer, audience: AUDIENCE, claims: { project_id: '7' } }
    await credential(id, { kind: 'trust', trust })
    const scim_key = (await credential(await machine('dir', owner), { kind: 'key', permissions: ['scim:write'] })).key
    const token = async (body: object) => {
      const request = { method: 'POST', path: '/oauth/token', headers: json, body: JSON.stringify(body) }
      return (await send(gateway, request)).status === 200
    }
    const scim = (method: string, path: string, body?: object) => {
      const headers = { ...json, authorization: `Bearer ${scim_key}` }
      return send(gateway, { method, path: `/scim/v2/${path}`, headers, ...(body && { body: JSON.stringify(body) }) })
    }
    const person = (userName: string) => ({ schemas: [USER], userName, externalId: randomUUID(), active: true })
    const made = await Promise.all(sessions.map((_, at) => scim('POST', 'Users', person(`kept-${at}`))))
    const ids = made.map(({ text }) => String(JSON.parse(text).id))
    let turn = 0
    const assertion = { iss: 'machine:bench', sub: 'machine:bench', aud: 'signalbox', alg: 'EdDSA', kid: 'own' }
    const calls: Calls = {
      'token for a key': () => token({ grant_type: 'client_credentials', client_secret: key }),
      'token for a signed assertion': async () =>
        token({
          grant_type: 'client_credentials',
          client_assertion_type: ASSERTION,
          client_assertion: await signed({}, assertion, own.privateKey),
        }),
      'token for a CI token': async () =>
        token({
          grant_type: EXCHANGE,
          client_id: 'machine:bench',
          subject_token: await ci.job(),
          subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
        }),
      'SCIM: a person by name': async () =>
        (await scim('GET', 'Users?filter=userName%20eq%20%22kept-0%22')).status === 200,
      'SCIM: one person': async (worker) => (await scim('GET', `Users/${ids[worker]}`)).status === 200,
      'SCIM: a new person': async () => (await scim('POST', 'Users', person(`new-${turn++}`))).status === 201,
      'SCIM: a change of a person': async (worker) => {
        const value = `kept-${worker}-${turn++}`
        const Operations = [{ op: 'replace', path: 'displayName', value }]
        return (await scim('PATCH', `Users/${ids[worker]}`, { schemas: [PATCH], Operations })).status === 200
      },
    }
    return besideRefresh('machines', bench, sessions, calls)
  }
