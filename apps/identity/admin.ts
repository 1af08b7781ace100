import { parseArgs } from 'node:util'
import { ONE_ACT } from '../../db/client.ts'
import { isRole, ROLES } from '../shared/auth/permissions.ts'
import { factLines } from '../shared/contracts/identity/change-facts.ts'
import { AppError } from '../shared/errors.ts'
import { loadIdentityConfig } from './config.ts'
import { confirmHere } from './control/changes.ts'
import { partOfLink } from './control/halves.ts'
import type { IdentityDeps, Uses } from './deps.ts'
import { MEASURES } from './measures.ts'
import { refuseClosedLogin, refuseUsername, throwIf } from './rules.ts'
import { type BootstrapDeps, bootstrapAdmin, type Enrolled, enrolHere, Refused } from './users/bootstrap.ts'
import { createDeps } from './wire.ts'

const ALL = ROLES.join(',')
const USAGE = {
  'bootstrap-admin': `usage: bootstrap-admin --username NAME [--roles ${ALL}]`,
  enrol: `usage: enrol --username NAME [--roles ${ALL}]   (--roles creates a new account)`,
  confirm: 'usage: confirm CHANGE',
} as const

/** `npm run admin -- identity <verb>`: actions that need identity's own keys and database. Returns exit codes. */
export const verbs: Record<string, (args: string[]) => Promise<number>> = {
  'bootstrap-admin': (args) => {
    const asked = parse(args)
    if (!asked) return usage('bootstrap-admin')
    const { username, roles = [] } = asked
    return acting(async (deps) => {
      throwIf(refuseClosedLogin(deps.config.break_glass, username))
      link(deps, await bootstrapAdmin(bootstrapOf(deps), username, [...new Set(['admin', ...roles])]))
    })
  },
  enrol: (args) => {
    const asked = parse(args)
    if (!asked) return usage('enrol')
    return acting(async (deps) => {
      throwIf(refuseClosedLogin(deps.config.break_glass, asked.username))
      link(deps, await enrolHere(bootstrapOf(deps), asked.username, asked.roles))
    })
  },
  confirm: ([change_id, ...more]) => {
    if (change_id === undefined || change_id.startsWith('-') || more.length > 0) return usage('confirm')
    return acting(async (deps) => {
      const change = await confirmHere(deps, MEASURES, change_id)
      const { id, kind, subject, user_id } = change
      console.error([`Confirmed: ${kind} for ${subject.name}.`, ...factLines(change)].join('\n  '))
      if (user_id === null) return
      const half = await partOfLink(deps, { id, user_id, part: 'second' })
      console.error(`The second half of the link of ${subject.name}; whoever requested the change has the first:`)
      console.log(half.url)
    })
  },
}

const usage = async (verb: keyof typeof USAGE): Promise<number> => {
  console.error(USAGE[verb])
  return 2
}

const acting = async (act: (deps: IdentityDeps) => Promise<void>): Promise<number> => {
  const deps = createDeps(loadIdentityConfig(), { patience: ONE_ACT })
  try {
    await act(deps)
    return 0
  } catch (error) {
    if (!(error instanceof Refused || error instanceof AppError)) throw error
    console.error(`Refused: ${error.message}`)
    return 1
  } finally {
    await deps.close()
  }
}

const bootstrapOf = ({ db, keys, credential }: Uses<'credential' | 'db' | 'keys'>): BootstrapDeps => ({
  db,
  audit_key: keys.audit,
  credential,
})

/** The link is alone on the last line of standard output, for scripts. */
const link = ({ config }: Uses<'config'>, { username, token }: Enrolled): void => {
  console.error(`Open this link within an hour and set the password of ${username}:`)
  console.log(`${config.GATEWAY__HTTP__PUBLIC_ORIGIN}/enrol#${token}`)
}

const parse = (args: string[]): { username: string; roles: string[] | undefined } | undefined => {
  try {
    const text = { type: 'string' } as const
    const { values } = parseArgs({ args, options: { username: text, roles: text } })
    const { username = '', roles } = values
    const list = roles === undefined ? undefined : [...new Set(roles.split(','))]
    if (list && !list.every(isRole)) return undefined
    return refuseUsername(username, { provided: true }) ? undefined : { username, roles: list }
  } catch {
    return undefined
  }
}
