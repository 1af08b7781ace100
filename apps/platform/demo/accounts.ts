import { randomBytes, randomInt } from 'node:crypto'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readIfThere, writeWhole } from '../base/record.ts'
import { run } from '../servers/sources.ts'
import { type Account, ApiError, type Patience, type Person, signIn, soon } from './client.ts'

/** `hosts`: the number that the seed began with, so that it continues with the same. */
type DemoFile = { users: Account[]; seeded: boolean; hosts?: number }

/** The people of the demo: ada creates the others. No account has a password that anyone could know beforehand. */
const PEOPLE = [
  { username: 'olga', roles: ['operator'], group_key: 'weboperators' },
  { username: 'eva', roles: ['engineer', 'approver'], group_key: 'netops' },
] as const
const GROUPS = [
  { group_key: 'weboperators', name: 'Web operators', description: 'Run releases of the web tier.' },
  { group_key: 'netops', name: 'Network operations', description: 'Approve what takes traffic away from hosts.' },
] as const

const demoFile = (dir: string) => join(dir, 'demo.json')

/** The accounts and the progress of the seed, from `.signalbox/demo.json`. */
export const readDemo = (dir: string): DemoFile | undefined => readIfThere(demoFile(dir))

export const writeDemo = (dir: string, demo: DemoFile): void =>
  writeWhole(demoFile(dir), `${JSON.stringify(demo, null, 2)}\n`)

/** Readable enough to type once: 4 groups of 5 letters and digits, 100 random bits. */
const LOWER = 'abcdefghijkmnopqrstuvwxyz'
const UPPER = 'ABCDEFGHJKLMNPQRSTUVWXYZ'
const DIGITS = '23456789'
const pick = (letters: string): string => letters.charAt(randomInt(letters.length))

/** Four groups of five without characters that look alike; each group has one of every kind that the rules require. */
const newPassword = (): string =>
  Array.from({ length: 4 }, () => [LOWER, UPPER, DIGITS, LOWER + UPPER, LOWER + UPPER].map(pick).join('')).join('-')

/**
 * Creates the demo accounts: ada with the same command as in production, the others by ada through the public API.
 * Passwords are recorded before they are set, so that an interrupted run resumes with them.
 */
export const ensureAccounts = async (gateway_url: string, dir: string, patience?: Patience): Promise<DemoFile> => {
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
  const door: Door = { gateway_url, patience }
  const ada = await ensureAdmin(door, dir, accountOf('ada'))
  for (const group of GROUPS) await unlessThere(() => ada.post('/v1/admin/groups', group))
  for (const person of PEOPLE) await personAt(door, ada, accountOf(person.username), person.group_key)
  return demo
}

/** The gateway at which people sign in, and how long they wait there. */
type Door = { gateway_url: string; patience: Patience | undefined }

const canSignIn = ({ gateway_url, patience }: Door, account: Account): Promise<Person | undefined> =>
  signIn(gateway_url, account, patience).catch((error: unknown) => {
    if (error instanceof ApiError && error.status === 401) return undefined
    throw error
  })

const ADMIN = fileURLToPath(new URL('../admin.ts', import.meta.url))
const BOOTSTRAP_MS = 300_000

const ensureAdmin = async (door: Door, dir: string, account: Account): Promise<Person> => {
  const there = await canSignIn(door, account)
  if (there) return there
  const args = [ADMIN, 'identity', 'bootstrap-admin', '--username', account.username, '--roles', account.roles.join()]
  const said = await run(process.execPath, args, {
    timeout_ms: BOOTSTRAP_MS,
    env: { SIGNALBOX_DIR: dir, NODE_ENV: 'development' }, // whatever this shell says
  }).catch((error: Error) => error)
  const token = typeof said === 'string' ? /#(\S+)\s*$/.exec(said)?.[1] : undefined // the link of the last line ends in the token
  if (!token)
    throw new Error(
      `the first administrator could not be created: ${said instanceof Error ? said.message : said.trim()}`,
    )
  await enrol(door, token, account.password)
  return signIn(door.gateway_url, account, door.patience)
}

const enrol = ({ gateway_url, patience }: Door, enrolment_token: string, new_password: string): Promise<void> => {
  const key = randomBytes(16).toString('hex')
  return soon(async () => {
    const reply = await fetch(`${gateway_url}/api/v1/users/enrol`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': key },
      body: JSON.stringify({ enrolment_token, new_password }),
      signal: AbortSignal.timeout(15_000),
    })
    if (!reply.ok)
      throw new ApiError('enrolment', reply.status, (await reply.json()) as Record<string, unknown>, reply.headers)
  }, patience)
}

type User = { id: string; username: string }
type Made = { user: User; enrolment: { token: string } }

export const ensurePerson = (gateway_url: string, ada: Person, account: Account, group_key: string): Promise<void> =>
  personAt({ gateway_url, patience: undefined }, ada, account, group_key)

const personAt = async (door: Door, ada: Person, account: Account, group_key: string): Promise<void> => {
  if (await canSignIn(door, account)) return
  const grants = account.roles.map((role) => ({ role, scope: {} }))
  const made = await unlessThere(() => ada.post<Made>('/v1/admin/users', { username: account.username, grants }))
  const user = made?.body.user ?? (await findUser(ada, account.username))
  const enrolled = made ?? (await ada.post<Made>(`/v1/admin/users/${user.id}/enrolment-token`, {}))
  const { token } = enrolled.body.enrolment
  await ada.put(`/v1/admin/groups/${group_key}/members/${user.id}`, undefined)
  await enrol(door, token, account.password)
}

const findUser = async (ada: Person, username: string): Promise<User> => {
  const { items } = await ada.get<{ items: User[] }>(`/v1/admin/users?q=${encodeURIComponent(username)}`)
  const found = items.find((user) => user.username === username)
  if (!found) throw new Error(`the account ${username} does not exist and could not be created`)
  return found
}

/** An interrupted run may have created it already. */
const unlessThere = <T>(make: () => Promise<T>): Promise<T | undefined> =>
  make().catch((error: unknown) => {
    if (error instanceof ApiError && error.status === 409) return undefined
    throw error
  })
