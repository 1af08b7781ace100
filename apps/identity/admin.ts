import { parseArgs } from 'node:util'
import { isRole, ROLES } from '../shared/auth/permissions.ts'
import { AppError } from '../shared/errors.ts'
import { loadIdentityConfig } from './config.ts'
import { createDeps } from './deps.ts'
import { bootstrapAdmin, type Enrolled, Refused, recoverAdmin } from './users/bootstrap.ts'

const USAGE = `usage: bootstrap-admin --username NAME [--roles ${ROLES.join(',')}]   or   bootstrap-admin --recover NAME`

/** `npm run admin -- identity <verb>`: acts that need identity's own keys and database. Each returns its exit code. */
export const verbs: Record<string, (args: string[]) => Promise<number>> = {
  'bootstrap-admin': async (args) => {
    const asked = parse(args)
    if (!asked) {
      console.error(USAGE)
      return 2
    }
    const config = loadIdentityConfig()
    const deps = createDeps(config)
    try {
      const bootstrap = { db: deps.db, audit_key: deps.keys.audit, credential: deps.credential }
      print(
        config.GATEWAY__HTTP__PUBLIC_ORIGIN,
        asked.recover
          ? await recoverAdmin(bootstrap, asked.recover)
          : await bootstrapAdmin(bootstrap, asked.username, asked.roles),
      )
      return 0
    } catch (error) {
      if (!(error instanceof Refused || error instanceof AppError)) throw error
      console.error(`Refused: ${error.message}`)
      return 1
    } finally {
      await deps.close()
    }
  },
}

/** The link stands alone on the last line of standard output, for scripts. */
const print = (origin: string, { username, token }: Enrolled) => {
  console.error(`Open this link within an hour and set the password of ${username}:`)
  console.log(`${origin}/enrol#${token}`)
}

const NAME = /^[\p{L}\p{M}\p{Nd}._@+-]{1,64}$/u

const parse = (args: string[]): { username: string; roles: string[]; recover: string } | undefined => {
  try {
    const text = { type: 'string' } as const
    const { values } = parseArgs({ args, options: { username: text, roles: text, recover: text } })
    const { username = '', roles = 'admin', recover = '' } = values
    const list = [...new Set(['admin', ...roles.split(',')])]
    if ((username === '') === (recover === '') || !list.every(isRole)) return undefined
    return NAME.test(username || recover) ? { username, recover, roles: list } : undefined
  } catch {
    return undefined
  }
}
