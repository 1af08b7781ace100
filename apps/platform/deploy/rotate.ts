import { randomBytes, X509Certificate } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { loadLinks, peerOf } from '../../shared/links.ts'
import { createServiceKey, type RegistryEntry } from '../../shared/service/keys.ts'
import { certificateOf, type Peer, type Server } from '../../shared/tls/peer.ts'
import { writeWhole } from '../base/record.ts'
import { APP_NAMES } from '../run/apps.ts'
import { NEXT_KEYS } from '../run/keys.ts'
import { createServerSecrets } from '../servers/up.ts'
import { AUTHORITIES, issuerOf, makeAuthority } from './certificates.ts'
import { productionEnv } from './reference.ts'

export const ROTATIONS = ['next', 'use', 'retire', 'accounts', 'evidence', 'push', 'enrolment'] as const
export type Rotation = (typeof ROTATIONS)[number]

/** Settings whose values a rotation changes in the environment files alone. */
export const ROTATED = /__(SECRET__KEYS|KEK)$/

/** The new text of each file below the folder of the setup; null removes it. */
type Changes = Record<string, string | null>
const begunFile = (out: string): string => join(out, 'rotation.json')

/**
 * One step of a rotation, in the folder of the setup, which then writes the files that follow from it. `next` adds a key
 * beside each present one: service keys, `SECRET__KEYS`, key encryption keys, payload keys and the authorities. Once
 * every process has it, `use` makes it the one that signs. Once every process has that too, `retire` ends the trust in
 * the authorities and service keys of before. `accounts` makes new passwords and NKEYs for the servers; the other steps
 * remove a key that has leaked. All changes of a step are in one file before the first is made, so the next run completes
 * a step that was interrupted. Returns why a step is out of order, and then changes no file.
 */
export const rotate = async (out: string, step: Rotation | undefined): Promise<string | undefined> => {
  if (!existsSync(begunFile(out))) {
    if (step === undefined) return
    if (!existsSync(join(out, 'keys/services.json')))
      return `${out} has no keys: run the set-up without --rotate first.`
    const changes = await STEPS[step](out, existsSync(join(out, 'keys', NEXT_KEYS)))
    if (typeof changes === 'string') return changes
    writeWhole(begunFile(out), JSON.stringify({ step, changes }))
  }
  const begun = JSON.parse(readFileSync(begunFile(out), 'utf8')) as { step: Rotation; changes: Changes }
  if (step !== undefined && step !== begun.step)
    return `The last rotation was interrupted: run --rotate ${begun.step} again first.`
  for (const [name, text] of Object.entries(begun.changes))
    if (text === null) rmSync(join(out, name), { recursive: true, force: true })
    else writeWhole(join(out, name), text, name.endsWith('.pem') ? 0o644 : 0o600)
}

/** Once the files that follow from a step are written, it is over. */
export const endRotation = (out: string): void => rmSync(begunFile(out), { force: true })

const STEPS: Record<Rotation, (out: string, has_next: boolean) => string | Changes | Promise<Changes>> = {
  next: (out, has_next) => (has_next ? 'The next keys exist: restart all apps, then run --rotate use.' : addNext(out)),
  use: (out, has_next) =>
    has_next ? takeNext(out) : 'No next keys exist: run --rotate next first, and restart all apps.',
  retire: (out, has_next) => (has_next ? 'The next keys are not in use yet: run --rotate use first.' : retireOld(out)),
  accounts: (out) => renewAccounts(out),
  // Whoever keeps files of evidence verifies them with the old public key.
  evidence: (out) => {
    const { kty, crv, x } = JSON.parse(read(out, 'keys/evidence.json'))
    return { [`keys/evidence.${Date.now()}.public.json`]: JSON.stringify({ kty, crv, x }), 'keys/evidence.json': null }
  },
  push: () => ({ 'keys/push.json': null }),
  enrolment: (out) => {
    const { enrolment: _, ...rest } = JSON.parse(read(out, 'keys/secrets.json'))
    const env = read(out, 'env/credential.secret.env').replace(/^CREDENTIAL__ENROLMENT__KEY=.*\n/m, '')
    return { 'env/credential.secret.env': env, 'keys/secrets.json': JSON.stringify(rest, null, 2) }
  },
}

const read = (out: string, name: string): string => readFileSync(join(out, name), 'utf8')

/**
 * Old keys stay in each list: audit rows and the addresses of notifications depend on them. An old key encryption key
 * opens rows that no app has sealed anew yet, and those of a backup.
 */
const turnLists = (out: string, step: 'next' | 'use'): Changes => {
  // A setting of two apps must get the same key in both.
  const made = new Map<string, string>()
  const keyOf = (name: string): string => {
    const key = made.get(name) ?? randomBytes(32).toString('base64')
    made.set(name, key)
    return key
  }
  return inSecretFiles(out, (text) =>
    text.replaceAll(/^(\w+__(?:SECRET__KEYS|KEK))='?([^'\n]+)'?$/gm, (_line, name: string, value: string) => {
      const keys = value.startsWith('[') ? (JSON.parse(value) as string[]) : [value]
      const turned = step === 'next' ? [...keys, keyOf(name)] : [keys.at(-1), ...keys.slice(0, -1)]
      return `${name}='${JSON.stringify(turned)}'`
    }),
  )
}

const inSecretFiles = (out: string, change: (text: string, app: string) => string): Changes =>
  Object.fromEntries(
    readdirSync(join(out, 'env'))
      .filter((name) => name.endsWith('.secret.env'))
      .map((name) => [`env/${name}`, change(read(out, `env/${name}`), name.replace('.secret.env', ''))]),
  )

/** Old payload keys stay as well: Temporal keeps what they encrypted until the end of its retention. */
const turnPayloadKeys = (out: string, step: 'next' | 'use'): Changes => {
  const stored = JSON.parse(read(out, 'keys/payload.json')) as { current: string; keys: Record<string, string> }
  const newest = Math.max(...Object.keys(stored.keys).map((id) => Number(id) || 0))
  if (step === 'next') stored.keys[newest + 1] = randomBytes(32).toString('base64url')
  else stored.current = String(newest)
  return { 'keys/payload.json': `${JSON.stringify(stored)}\n` }
}

const SETTINGS = { postgres: 'DATABASE__URL', redis: 'REDIS__URL', nats: 'NATS__URL', temporal: 'TEMPORAL__ADDRESS' }
export const SERVERS = Object.keys(SETTINGS) as Server[]

/**
 * The servers that `retire` would cut off: those whose certificate only an authority of before makes trustworthy, and
 * those that cannot be asked from here, unless they are among `unasked`. `at`: where the folder is on the hosts.
 */
export const needOld = async (out: string, at: string, unasked: readonly string[] = []): Promise<string[]> => {
  const going = AUTHORITIES.map((authority) => read(out, `tls/${authority}.pem`))
    .filter(isOurs)
    .map((trusted) => trusted.slice(firstPem(trusted).length).trim())
    .filter(Boolean)
  // Service keys alone end, or a run that was interrupted is completed, whose changes are already fixed.
  if (going.length === 0 || existsSync(begunFile(out))) return []
  const asked = new Map<string, Promise<string | undefined>>()
  for (const app of APP_NAMES) {
    const env: NodeJS.Dict<string> = {}
    for (const [name, value] of Object.entries(productionEnv(out, app) ?? {}))
      env[name] = value.replaceAll(`${at}/`, `${out}/`)
    for (const server of SERVERS) {
      const url = env[`${app.toUpperCase()}__${SETTINGS[server]}`]
      if (!url || unasked.includes(server)) continue
      try {
        const peer = peerOf(server, url, loadLinks(env))
        const place = `${server} at ${peer?.host}:${peer?.port}`
        if (peer && !asked.has(place)) asked.set(place, whyNeeded(server, peer, going))
      } catch (error) {
        // A file that only the hosts have.
        asked.set(server, Promise.resolve(`cannot be asked: ${(error as Error).message}`))
      }
    }
  }
  const answers = await Promise.all([...asked].map(async ([place, why]) => ({ place, why: await why })))
  return answers.flatMap(({ place, why }) => (why ? [`${place} ${why}`] : []))
}

const whyNeeded = async (server: Server, peer: Peer, going: readonly string[]): Promise<string | undefined> => {
  const faultOf = (one: Peer) =>
    certificateOf(server, one).then(
      () => undefined,
      (error: Error) => error.message,
    )
  const ca = going.reduce((left, pems) => left?.replace(pems, ''), peer.tls.ca)
  // Its authority is another one, which stays trusted.
  if (ca === peer.tls.ca) return
  if (!(await faultOf({ ...peer, tls: { ...peer.tls, ca } }))) return
  const fault = await faultOf(peer)
  return fault ? `cannot be asked: ${fault}` : 'shows a certificate of the authority of before'
}

const firstPem = (text: string): string => `${text.split('-----END CERTIFICATE-----')[0]}-----END CERTIFICATE-----\n`

/** Told by the name: its key may be kept elsewhere. Whoever signs by an authority of their own rotates and retires it there. */
const isOurs = (trusted: string): boolean => new X509Certificate(trusted).subject.startsWith('CN=Signalbox')

const addNext = async (out: string): Promise<Changes> => {
  const next = `keys/${NEXT_KEYS}`
  const changes: Changes = { ...turnLists(out, 'next'), ...turnPayloadKeys(out, 'next') }
  for (const app of Object.keys(JSON.parse(read(out, 'keys/services.json'))))
    if (existsSync(join(out, `keys/${app}.json`)))
      changes[`${next}/${app}.json`] = JSON.stringify(createServiceKey().private_jwk)
  for (const authority of AUTHORITIES) {
    const trusted = read(out, `tls/${authority}.pem`)
    if (!isOurs(trusted)) continue
    const { cert, key } = await makeAuthority()
    changes[`${next}/${authority}.pem`] = cert
    changes[`${next}/${authority}.key`] = key
    changes[`tls/${authority}.pem`] = firstPem(trusted) + cert
  }
  return changes
}

/** The certificates below `tls` that an authority issued: a person's own have other ones. */
const pairsOf = (out: string, authority: string): string[] => {
  const trusted = read(out, `tls/${authority}.pem`)
  const names = readdirSync(join(out, 'tls')).flatMap((file) => /^(.+)\.pem$/.exec(file)?.[1] ?? [])
  return names.filter(
    (name) => name !== authority && issuerOf(new X509Certificate(read(out, `tls/${name}.pem`)), trusted),
  )
}

const takeNext = (out: string): Changes => {
  const next = `keys/${NEXT_KEYS}`
  const changes: Changes = { ...turnLists(out, 'use'), ...turnPayloadKeys(out, 'use') }
  for (const name of readdirSync(join(out, next)))
    if (name.endsWith('.json')) changes[`keys/${name}`] = read(out, `${next}/${name}`)
  for (const authority of AUTHORITIES) {
    if (!existsSync(join(out, next, `${authority}.key`))) continue
    for (const name of pairsOf(out, authority)) for (const end of ['pem', 'key']) changes[`tls/${name}.${end}`] = null
    changes[`tls/${authority}.key`] = read(out, `${next}/${authority}.key`)
    changes[`tls/${authority}.pem`] =
      read(out, `${next}/${authority}.pem`) + firstPem(read(out, `tls/${authority}.pem`))
  }
  // Anchors that it has signed are verified by it.
  const audit = { [`keys/audit.${Date.now()}.json`]: read(out, 'keys/audit.json'), 'keys/audit.json': null }
  return { ...changes, ...audit, [next]: null }
}

/** Whoever shows a certificate or a token of before is refused from then on. Keys that open what is stored stay. */
const retireOld = (out: string): string | Changes => {
  const changes: Changes = {}
  for (const authority of AUTHORITIES) {
    const [file, trusted] = [`tls/${authority}.pem`, read(out, `tls/${authority}.pem`)]
    if (!isOurs(trusted) || firstPem(trusted) === trusted) continue
    const isOld = (name: string) => !issuerOf(new X509Certificate(read(out, `tls/${name}.pem`)), firstPem(trusted))
    const old = pairsOf(out, authority).filter(isOld)
    if (old.length > 0)
      return `The authority of before still signs for tls/${old.join('.pem, tls/')}.pem: delete these.`
    changes[file] = firstPem(trusted)
  }
  const registry = JSON.parse(read(out, 'keys/services.json')) as Record<string, RegistryEntry>
  let has_old = false
  for (const [app, entry] of Object.entries(registry)) {
    if (!existsSync(join(out, `keys/${app}.json`))) continue
    const { kid } = JSON.parse(read(out, `keys/${app}.json`)) as { kid: string }
    const own = entry.keys.filter((key) => key.kid === kid)
    has_old ||= own.length < entry.keys.length
    entry.keys = own
  }
  if (has_old) changes['keys/services.json'] = `${JSON.stringify(registry, null, 2)}\n`
  return Object.keys(changes).length > 0 ? changes : 'No earlier authority or service key is trusted.'
}

const renewAccounts = (out: string): Changes => {
  const stored = JSON.parse(read(out, 'keys/secrets.json')) as { servers: { users: Record<string, string> } }
  const before = stored.servers.users
  const users = createServerSecrets(Object.keys(before)).users
  const env = inSecretFiles(out, (text, app) => text.replaceAll(`:${before[app]}@`, `:${users[app]}@`))
  stored.servers.users = users
  const seeds = readdirSync(join(out, 'keys')).filter((name) => name.endsWith('.nk'))
  return {
    ...env,
    ...Object.fromEntries(seeds.map((name) => [`keys/${name}`, null])),
    'keys/secrets.json': JSON.stringify(stored, null, 2),
  }
}
