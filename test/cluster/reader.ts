import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Agent, buildConnector, request } from 'undici'
import { ROOT } from '../../apps/platform/base/paths.ts'
import { uuidv7 } from '../../apps/shared/ids.ts'
import { type Answer, createAdministrator } from '../support/administrator.ts'

/**
 * `reader.ts CONFIG`: the administrator of the guide "On one machine" signs in every half minute and reads through every app, until
 * SIGTERM. As any client does, it repeats what is said to be retryable. Prints what was refused, and exits with 1 if
 * anything was.
 */
const ORIGIN = 'https://localhost:8443'
const PATHS = ['/api/v1/me', '/api/v1/resource-types', '/api/v1/admin/users', '/api/v1/operations']
/** Below the limit of requests per person. */
const EVERY_MS = 200
const TRIES = 5
const AGAIN_MS = 1000
const SIGNED_IN_MS = 30_000

const [config = ''] = process.argv.slice(2)
/** A connection trusts the authorities of that moment, as a browser that was told of the next one. */
const dispatcher = new Agent({
  connect: (options, done) => buildConnector({ ca: readFileSync(join(config, 'tls/ca.pem'), 'utf8') })(options, done),
})

const send = async (path: string, body?: object, token?: string) => {
  const headers = {
    ...(body && { 'content-type': 'application/json', 'idempotency-key': uuidv7() }),
    ...(token && { authorization: `Bearer ${token}` }),
  }
  const given = {
    dispatcher,
    headers,
    method: body ? 'POST' : 'GET',
    body: body ? JSON.stringify(body) : null,
  } as const
  const { statusCode, body: reply } = await request(`${ORIGIN}${path}`, given)
  return { status: statusCode, text: await reply.text() }
}

const link = execFileSync(
  process.execPath,
  [
    ...['', '.secret'].map((kind) => `--env-file=${join(config, `env/identity${kind}.env`)}`),
    ...[join(ROOT, 'apps/platform/admin.ts'), 'identity', 'enrol', '--username', 'root'],
  ],
  { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] },
)
const enrolment_token = link.split('/enrol#')[1]?.trim()
const answered = async (path: string, body?: object, token?: string): Promise<Answer> => {
  const { status, text } = await send(path, body, token)
  return { status, body: text ? JSON.parse(text) : undefined }
}
const root = createAdministrator(ORIGIN, answered)
const enrolled = await root.enrol(enrolment_token ?? '')
if (enrolled.status !== 204) throw new Error(`the link of root: ${enrolled.status} ${JSON.stringify(enrolled.body)}`)
const { added } = await root.addPasskey()
if (added.status !== 201) throw new Error(`the passkey of root: ${added.status} ${JSON.stringify(added.body)}`)

let ended = false
process.once('SIGTERM', () => {
  ended = true
})
const refused: string[] = []
let [reads, repeated, token, signed_in_at] = [0, 0, '', Number.NEGATIVE_INFINITY]

/** As a browser does, a read is sent anew if a kept connection was closed just then, before any answer (RFC 9112, 9.3.1). */
const read = (path: string): Promise<Answer> =>
  answered(path, undefined, token).catch((error: Error & { code?: string }) => {
    if (error.code !== 'UND_ERR_SOCKET') throw error
    return { status: 0, body: { retryable: true, closed: error.message } }
  })

/** Returns a good answer, or why there is none after some tries. A sign-in is repeated as a whole. */
const firmly = async (what: string, ask: () => Promise<Answer>): Promise<{ body?: Answer['body']; why?: string }> => {
  for (let tries = 1; ; tries++) {
    const { status, body } = await ask()
    if (status === 200) return { body }
    const why = `${status} ${JSON.stringify(body)}`
    if (tries === TRIES || !body?.retryable) return { why }
    repeated += 1
    console.log(`repeated ${new Date().toISOString()} ${what}: ${why}`)
    await delay(AGAIN_MS)
  }
}

while (!ended) {
  const path = PATHS[reads % PATHS.length] ?? ''
  const sign_in = performance.now() - signed_in_at > SIGNED_IN_MS
  const what = sign_in ? '/v1/token' : path
  try {
    const { body, why } = await firmly(what, sign_in ? root.signIn : () => read(path))
    if (why !== undefined) refused.push(`${new Date().toISOString()} ${what}: ${why}`)
    else if (sign_in) {
      token = String(body?.access_token)
      signed_in_at = performance.now()
    }
  } catch (error) {
    refused.push(`${new Date().toISOString()} ${what}: ${(error as Error).message}`)
  }
  if (!sign_in) reads += 1
  if (reads === PATHS.length) console.log('reads')
  await delay(EVERY_MS)
}
for (const one of refused) console.log(`REFUSED  ${one}`)
console.log(`${reads} reads and sign-ins through every app, repeated: ${repeated}, refused: ${refused.length}`)
process.exit(refused.length === 0 ? 0 : 1)
