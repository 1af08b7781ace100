import { cancelJob, getJob, insertJob, type JobRow, listResults } from '../../../db/catalog/imports/jobs.ts'
import type { Answer } from '../../../db/command/run.ts'
import {
  type ImportJob,
  type ImportJobRequest,
  type ImportResult,
  OUTCOMES,
} from '../../shared/contracts/imports/imports.ts'
import { pick } from '../../shared/data/pick.ts'
import { notFound } from '../../shared/errors.ts'
import { uuidv7 } from '../../shared/ids.ts'
import { commandOf, type Write } from '../command/request.ts'
import { runCommand } from '../command/run.ts'
import type { CatalogDeps, Uses } from '../deps.ts'
import { timeOrNull, timeText } from '../read/documents.ts'
import { type CheckItem, refusedIn } from './results.ts'

/** Imports that run in the background (catalog.md 13): one row per job and one per item. */

/** Stores the items to import; `worker.ts` imports them. */
export const startJob = (
  deps: CatalogDeps,
  body: ImportJobRequest,
  write: Write,
  check: CheckItem,
): Promise<Answer> => {
  const refused = refusedIn(body.items, check, write)
  const job_id = uuidv7()
  return runCommand(deps, commandOf(deps, write), async (tx, stamp) => {
    const at = stamp()
    const job = {
      job_id,
      user_id: write.caller.user_id,
      source: body.source,
      options: body.options ?? {},
      reason: write.query.reason ?? null,
      request_id: write.request_id,
      status: 'queued' as const,
      total: body.items.length,
      done: refused.size,
      counts: { refused: refused.size },
      created_at: at,
      updated_at: at,
    }
    await insertJob(tx, job, body.items, refused)
    const view = viewOf({ ...job, failures: 0, problem: null, ended_at: null })
    const headers = { location: `/v1/imports/${job_id}`, 'retry-after': '1' }
    return { status: 202, headers, body: view }
  })
}

/** A job of the caller; other callers' jobs are not found. */
export const readJob = async ({ db }: Uses<'db'>, job_id: string, user_id: string): Promise<ImportJob> =>
  viewOf(await jobOf({ db }, job_id, user_id))

const jobOf = async ({ db }: Uses<'db'>, job_id: string, user_id: string): Promise<JobRow> => {
  const job = await getJob(db, job_id, user_id)
  if (!job) throw notFound('import', job_id)
  return job
}

const viewOf = (job: JobRow): ImportJob => ({
  ...pick(job, 'job_id', 'status', 'total', 'done'),
  source: job.source as ImportJob['source'],
  counts: Object.fromEntries(OUTCOMES.map((name) => [name, job.counts[name] ?? 0])) as ImportJob['counts'],
  ...(job.problem && { problem: job.problem as NonNullable<ImportJob['problem']> }),
  created_at: timeText(job.created_at),
  updated_at: timeText(job.updated_at),
  ended_at: timeOrNull(job.ended_at),
})

/** Stops a job where it is; items already imported stay. */
export const stopJob = async (deps: CatalogDeps, job_id: string, write: Write): Promise<Answer> => {
  const { user_id } = write.caller
  await jobOf(deps, job_id, user_id)
  return runCommand(deps, commandOf(deps, write), async (tx, stamp) => {
    await cancelJob(tx, job_id, stamp())
    const job = await getJob(tx, job_id, user_id)
    if (!job) throw notFound('import', job_id)
    return { status: 200, body: viewOf(job) }
  })
}

const PAGE = 200

/** The results of the items, in order, starting after a position. */
export const readResults = async (
  deps: Uses<'db' | 'pages'>,
  job_id: string,
  user_id: string,
  page_token: string | undefined,
) => {
  const list = { route: 'imports', job_id }
  const [after = '-1'] = deps.pages.after(page_token, list) ?? []
  await jobOf(deps, job_id, user_id)
  const rows = await listResults(deps.db, job_id, Number(after), PAGE + 1)
  const { items, next_page_token } = deps.pages.cut(rows, PAGE, list, ({ seq }) => [String(seq)])
  return { items: items.map(({ result }) => result as ImportResult), next_page_token }
}
