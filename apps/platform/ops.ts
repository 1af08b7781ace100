import { readFlags } from './base/screen.ts'
import { OpsError, takeProduction } from './ops/access.ts'
import { deadLetters } from './ops/dead-letters.ts'
import { rebuild } from './ops/rebuild.ts'
import { rebuildOperations } from './ops/rebuild-operations.ts'
import { reconcile } from './ops/reconcile.ts'
import { supportBundle } from './ops/support-bundle.ts'
import { verifyAudit } from './ops/verify-audit.ts'
import { acceptRestores } from './restore/accept.ts'
import { drillBackup } from './restore/backup-drill.ts'
import { restoreDrill } from './restore/drill.ts'

/** `npm run ops -- <verb>`: a person's repairs of a store, an event or a row (reliability.md 4, 5). */
const USAGE = `usage: npm run ops -- <verb>
  dead-letters [list]                     events that a consumer set aside or NATS refuses, and messages to people that
                                          were given up; exits 3 when there are some
  dead-letters requeue <id>               applies an event again, with those after it; sends a message again
  dead-letters drop <id> --reason "…"     skips it; the reason is in the audit log
  verify-audit                            every audit row: MAC, columns, chain; names the first bad row and exits 3
  rebuild catalog [--apply]               builds the projection of the catalog anew and compares; exits 3 when they differ
  rebuild operations [--apply]            folds the events of every operation and compares its read models; exits 3 likewise
  accept-restore [--dry-run]              Postgres was restored: says what NATS knows and the database lost, and makes its
                                          state the only one; who was disabled since stays out unless --keep-access
  reconcile [--apply]                     compares open operations with the engine's workflows, both ways; exits 3 when they
                                          differ; with --apply workflows that nobody owns are saved and terminated
  restore-drill [--into DIR]              on a platform of its own: saves the database, changes, restores, accepts, reconciles,
                                          verifies; exits 3 when something of the lost future is still believed
  restore-drill --backup DIR [--to TIME] [--within 60] [--into DIR]
                                          restores your backup into a server of its own, and verifies keys, audit logs against the
                                          anchors, read models, evidence and the copied artifacts; production is untouched; exits 3 when
                                          one does not hold, or the last change is more than 60 minutes older than wanted; takes no --env
  support-bundle [--to FILE]              one archive of versions, settings without secrets, health, metrics and logs:
                                          [--operation ID] its states, [--hours 2] of logs, [--logs DIR], [--hosts '{app}']
Each verb works beside the platform of this folder, or in production with --env DIR: the folder that the set-up wrote.
Exit codes: 0 all is well, 1 it could not be done, 2 usage, 3 something was found.`

const usage = (why: string): never => {
  console.error(why ? `${why}\n${USAGE}` : USAGE)
  process.exit(2)
}

const options = {
  reason: { type: 'string' },
  apply: { type: 'boolean', default: false },
  'dry-run': { type: 'boolean', default: false },
  'keep-access': { type: 'boolean', default: false },
  into: { type: 'string' },
  backup: { type: 'string' },
  within: { type: 'string', default: '60' },
  to: { type: 'string' },
  operation: { type: 'string' },
  hours: { type: 'string', default: '2' },
  logs: { type: 'string' },
  env: { type: 'string' },
  hosts: { type: 'string', default: '127.0.0.1' },
} as const
const { values, positionals } = readFlags({ allowPositionals: true, options }, usage)
if (values.backup && values.env) usage('--backup takes no --env: the drill proves the copy of the configuration.')
const [verb, ...rest] = positionals
const verbs: Record<string, () => Promise<number>> = {
  'dead-letters': () => deadLetters(rest[0], rest[1], values.reason),
  'verify-audit': () => verifyAudit(),
  rebuild: () => (rest[0] === 'operations' ? rebuildOperations(values.apply) : rebuild(rest[0], values.apply)),
  'accept-restore': () => acceptRestores(values['dry-run'], values['keep-access']),
  reconcile: () => reconcile(values.apply),
  'restore-drill': () =>
    values.backup === undefined ? restoreDrill(values.into) : drillBackup({ ...values, backup: values.backup }),
  'support-bundle': () => supportBundle({ ...values, to: values.to ?? 'support-bundle.tgz' }),
}
const act = verb !== undefined && Object.hasOwn(verbs, verb) ? verbs[verb] : undefined
if (!act) usage(verb === undefined ? '' : `"${verb}" is not a verb.`)
else
  try {
    if (values.env) takeProduction(values.env)
    process.exitCode = await act()
  } catch (error) {
    console.error(error instanceof OpsError ? error.message : `${verb}: ${(error as Error).message}`)
    process.exitCode = 1
  }
