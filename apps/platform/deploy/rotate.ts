import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createServiceKey } from '../../shared/service/keys.ts'
import { NEXT_KEYS } from '../run/keys.ts'
import { createServerSecrets } from '../servers/up.ts'
import { makeAuthority } from './certificates.ts'

export const ROTATIONS = ['next', 'use', 'accounts'] as const
export type Rotation = (typeof ROTATIONS)[number]

/** Settings whose values a rotation changes in the environment files alone. */
export const ROTATED = /__(SECRET__KEYS|KEK)$/

/**
 * One step of a rotation, in the folder of the setup, which then writes the files that follow from it. `next` adds a key
 * beside each present one: service keys, `SECRET__KEYS`, key encryption keys, payload keys and the authority. Once
 * every process has it, `use` makes it the one that signs. `accounts` makes new passwords for the servers. Returns why a
 * step is out of order, and then changes no file.
 */
export const rotate = async (out: string, step: Rotation): Promise<string | undefined> => {
  const next = join(out, 'keys', NEXT_KEYS)
  if (!existsSync(join(out, 'keys/services.json'))) return `${out} has no keys: run the set-up without --rotate first.`
  if (step === 'accounts') return renewPasswords(out)
  if (existsSync(next) !== (step === 'use'))
    return step === 'use'
      ? 'No next keys exist: run --rotate next first, and restart all apps.'
      : 'The next keys exist: restart all apps, then run --rotate use.'
  turnLists(out, step)
  turnPayloadKeys(join(out, 'keys/payload.json'), step)
  if (step === 'next') await addNext(out, next)
  else takeNext(out, next)
}

const read = (file: string): string => readFileSync(file, 'utf8')
const write = (file: string, text: string): void => writeFileSync(file, text, { mode: 0o600 })

/** Old keys stay in `SECRET__KEYS`: audit rows and the addresses of notifications depend on them. */
const turnLists = (out: string, step: Rotation): void => {
  // A setting of two apps must get the same key in both.
  const made = new Map<string, string>()
  const keyOf = (name: string): string => {
    const key = made.get(name) ?? randomBytes(32).toString('base64')
    made.set(name, key)
    return key
  }
  eachSecretFile(out, (text) =>
    text.replaceAll(/^(\w+__(?:SECRET__KEYS|KEK))='?([^'\n]+)'?$/gm, (_line, name: string, value: string) => {
      const keys = value.startsWith('[') ? (JSON.parse(value) as string[]) : [value]
      // A key encryption key has at most one predecessor: apps have sealed anew all that lives longer.
      const kept = name.endsWith('KEK') ? keys.slice(0, 1) : keys
      const turned = step === 'next' ? [...kept, keyOf(name)] : [keys.at(-1), ...keys.slice(0, -1)]
      return `${name}='${JSON.stringify(turned)}'`
    }),
  )
}

const eachSecretFile = (out: string, change: (text: string, app: string) => string): void => {
  for (const name of readdirSync(join(out, 'env')).filter((one) => one.endsWith('.secret.env'))) {
    const file = join(out, 'env', name)
    write(file, change(read(file), name.replace('.secret.env', '')))
  }
}

/** Old payload keys stay as well: Temporal keeps what they encrypted until the end of its retention. */
const turnPayloadKeys = (file: string, step: Rotation): void => {
  const stored = JSON.parse(read(file)) as { current: string; keys: Record<string, string> }
  const newest = Math.max(...Object.keys(stored.keys).map((id) => Number(id) || 0))
  if (step === 'next') stored.keys[newest + 1] = randomBytes(32).toString('base64url')
  else stored.current = String(newest)
  write(file, `${JSON.stringify(stored)}\n`)
}

const firstPem = (text: string): string => `${text.split('-----END CERTIFICATE-----')[0]}-----END CERTIFICATE-----\n`

const addNext = async (out: string, next: string): Promise<void> => {
  const [authority, trusted] = [
    { cert_file: join(next, 'ca.pem'), key_file: join(next, 'ca.key') },
    join(out, 'tls/ca.pem'),
  ]
  mkdirSync(next, { mode: 0o700 })
  for (const app of Object.keys(JSON.parse(read(join(out, 'keys/services.json')))))
    if (existsSync(join(out, `keys/${app}.json`)))
      write(join(next, `${app}.json`), JSON.stringify(createServiceKey().private_jwk))
  // Whoever signs by an authority of their own rotates it there.
  if (!existsSync(join(out, 'tls/ca.key'))) return
  await makeAuthority(authority)
  write(trusted, firstPem(read(trusted)) + read(authority.cert_file))
}

const takeNext = (out: string, next: string): void => {
  const [trusted, tls] = [join(out, 'tls/ca.pem'), join(out, 'tls')]
  if (existsSync(join(next, 'ca.key'))) {
    write(trusted, read(join(next, 'ca.pem')) + firstPem(read(trusted)))
    renameSync(join(next, 'ca.key'), join(tls, 'ca.key'))
    for (const name of readdirSync(tls)) if (!name.startsWith('ca.')) rmSync(join(tls, name))
    rmSync(join(next, 'ca.pem'))
  }
  // Anchors that it has signed are verified by it.
  renameSync(join(out, 'keys/audit.json'), join(out, `keys/audit.${Date.now()}.json`))
  for (const name of readdirSync(next)) renameSync(join(next, name), join(out, 'keys', name))
  rmSync(next, { recursive: true })
}

const renewPasswords = (out: string): undefined => {
  const file = join(out, 'keys/secrets.json')
  const stored = JSON.parse(read(file)) as { servers: { users: Record<string, string> } }
  const before = stored.servers.users
  stored.servers.users = createServerSecrets(Object.keys(before)).users
  eachSecretFile(out, (text, app) => text.replaceAll(`:${before[app]}@`, `:${stored.servers.users[app]}@`))
  write(file, JSON.stringify(stored, null, 2))
}
