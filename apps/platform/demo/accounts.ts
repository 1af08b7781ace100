import { spawnSync } from 'node:child_process'
import { randomBytes, randomInt } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Account, ApiError, type Person, signIn, soon } from './client.ts'

type DemoFile = { users: Account[]; seeded: boolean }

/** The people of the demo: ada makes the others; no account has a password that anybody could know beforehand. */
const PEOPLE = [
  { username: 'olga', roles: ['operator'], group_key: 'weboperators' },
  { username: 'eva', roles: ['engineer', 'approver'], group_key: 'netops' },
] as const
const GROUPS = [
  { group_key: 'weboperators', name: 'Web operators', description: 'Run releases of the web tier.' },
  { group_key: 'netops', name: 'Network operations', description: 'Approve what takes traffic away from hosts.' },
] as const

const demoFile = (dir: string) => join(dir, 'demo.json')

/** The accounts and how far the seed came, from `.signalbox/demo.json`. */
export const readDemo = (dir: string): DemoFile | undefined =>
  existsSync(demoFile(dir)) ? (JSON.parse(readFileSync(demoFile(dir), 'utf8')) as DemoFile) : undefined

export const writeDemo = (dir: string, demo: DemoFile): void =>
  writeFileSync(demoFile(dir), `${JSON.stringify(demo, null, 2)}\n`, { mode: 0o600 })

/** Readable enough to type once: 4 groups of 5 letters and digits, 100 random bits. */
const LOWER = 'abcdefghijkmnopqrstuvwxyz'
const UPPER = 'ABCDEFGHJKLMNPQRSTUVWXYZ'
const DIGITS = '23456789'
const pick = (letters: string): string => letters.charAt(randomInt(letters.length))

/** Four groups of five without letters that look alike; each group holds one of every kind that the rules ask for. */
const newPassword = (): string =>
  Array.from({ length: 4 }, () => [LOWER, UPPER, DIGITS, LOWER + UPPER, LOWER + UPPER].map(pick).join('')).join('-')

/**
 * Makes the demo accounts: ada by the same command as in production, the others by ada through the public API. The
 * passwords are written down before they are set, so that a run that was cut short goes on with them.
 */
export const ensureAccounts = async (gateway_url: string, dir: string): Promise<DemoFile> => {
  const demo = readDemo(dir) ?? {
    users: [{ username: 'ada', roles: ['admin'] }, ...PEOPLE].map(({ username, roles }) => ({
      username,
      password: newPassword(),
      roles: [...roles],
    })),
    seeded: false,
  }
  if (demo.seeded) return demo
  writeDemo(dir, demo)
  const accountOf = (username: string) => demo.users.find((user) => user.username === username) as Account
  const ada = await ensureAdmin(gateway_url, dir, accountOf('ada'))
  for (const group of GROUPS) await unlessThere(() => ada.post('/v1/admin/groups', group))
  for (const person of PEOPLE) await ensurePerson(gateway_url, ada, accountOf(person.username), person.group_key)
  return demo
}

const canSignIn = (gateway_url: string, account: Account): Promise<Person | undefined> =>
  signIn(gateway_url, account).catch((error: unknown) => {
    if (error instanceof ApiError && error.status === 401) return undefined
    throw error
  })

const ADMIN = fileURLToPath(new URL('../admin.ts', import.meta.url))

const ensureAdmin = async (gateway_url: string, dir: string, account: Account): Promise<Person> => {
  const there = await canSignIn(gateway_url, account)
  if (there) return there
  const args = [ADMIN, 'identity', 'bootstrap-admin', '--username', account.username, '--roles', account.roles.join()]
  const { stdout, stderr, status } = spawnSync(process.execPath, args, {
    encoding: 'utf8',
    env: { ...process.env, SIGNALBOX_DIR: dir },
  })
  const token = /#(\S+)\s*$/.exec(stdout)?.[1] // the link of the last line ends in the token
  if (status !== 0 || !token) throw new Error(`the first administrator could not be made: ${(stderr || stdout).trim()}`)
  await enrol(gateway_url, token, account.password)
  return signIn(gateway_url, account)
}

const enrol = (gateway_url: string, enrolment_token: string, new_password: string): Promise<void> => {
  const key = randomBytes(16).toString('hex')
  return soon(async () => {
    const reply = await fetch(`${gateway_url}/api/v1/users/enrol`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': key },
      body: JSON.stringify({ enrolment_token, new_password }),
      signal: AbortSignal.timeout(15_000),
    })
    if (!reply.ok) throw new ApiError('enrolment', reply.status, (await reply.json()) as Record<string, unknown>)
  })
}

type User = { id: string; username: string }
type Made = { user: User; enrolment: { token: string } }

export const ensurePerson = async (
  gateway_url: string,
  ada: Person,
  account: Account,
  group_key: string,
): Promise<void> => {
  if (await canSignIn(gateway_url, account)) return
  const grants = account.roles.map((role) => ({ role, scope: {} }))
  const made = await unlessThere(() => ada.post<Made>('/v1/admin/users', { username: account.username, grants }))
  const user = made?.body.user ?? (await findUser(ada, account.username))
  const enrolled = made ?? (await ada.post<Made>(`/v1/admin/users/${user.id}/enrolment-token`, {}))
  const { token } = enrolled.body.enrolment
  await ada.put(`/v1/admin/groups/${group_key}/members/${user.id}`, undefined)
  await enrol(gateway_url, token, account.password)
}

const findUser = async (ada: Person, username: string): Promise<User> => {
  const { items } = await ada.get<{ items: User[] }>(`/v1/admin/users?q=${encodeURIComponent(username)}`)
  const found = items.find((user) => user.username === username)
  if (!found) throw new Error(`the account ${username} is neither there nor can it be made`)
  return found
}

/** A run that was cut short may have made it already. */
const unlessThere = <T>(make: () => Promise<T>): Promise<T | undefined> =>
  make().catch((error: unknown) => {
    if (error instanceof ApiError && error.status === 409) return undefined
    throw error
  })
