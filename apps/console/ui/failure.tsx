import { Link, linkOptions } from '@tanstack/react-router'
import type { Problem } from '../../shared/contracts/client/problem.ts'
import { problemOf } from '../api/client.ts'
import { Button } from '../forms/button.tsx'
import { ShapeIcon } from '../values/status.tsx'
import { useRefusal } from '../words/frame/refusal.ts'
import { t } from '../words/index.ts'
import { CopyButton } from './copy.tsx'
import { Heading, Loading, Page } from './page.tsx'

type Violation = { pointer: string; message: string }
type Told = Pick<Problem, 'detail' | 'code' | 'violations'> & Partial<Problem>

/** The text of a refusal: the page's own instead (`detail`), or its translation above the server's; the request id. */
export const ProblemText = ({ problem, detail }: { problem: Told; detail?: string | undefined }) => {
  const said = useRefusal(problem.code)
  return (
    <div className="flex flex-col gap-1">
      {detail ? (
        <p>{detail}</p>
      ) : (
        <>
          {said?.map((words) => (
            <p key={words}>{words}</p>
          ))}
          <p lang="en" className={said && 'text-meta text-muted'}>
            {problem.detail}
          </p>
          {problem.hint && !said ? (
            <p lang="en" className="text-muted">
              {problem.hint}
            </p>
          ) : null}
          <Violations detail={problem.detail} violations={problem.violations ?? []} />
        </>
      )}
      {problem.request_id ? (
        <p className="flex items-center gap-1 text-meta text-muted">
          {t.problem.request_id} <code>{problem.request_id}</code> <CopyButton text={problem.request_id} />
        </p>
      ) : null}
    </div>
  )
}

/** The violations of a refusal that its detail does not already mention. */
const Violations = ({ detail, violations }: { detail: string; violations: readonly Violation[] }) =>
  violations
    .filter(({ message }) => !detail.includes(message))
    .map(({ pointer, message }) => (
      <p key={pointer + message} lang="en" className="text-table">
        <code>{pointer}</code> {message}
      </p>
    ))

/** The text of a refusal, announced when it appears. */
export const Refused = ({ problem }: { problem: Problem | null | undefined }) =>
  problem ? (
    <div role="alert">
      <ProblemText problem={problem} />
    </div>
  ) : null

type Noun = keyof typeof t.noun
/** The list for each kind of object; parts of an operation lead to the operations. */
const LISTS = {
  resource: linkOptions({ to: '/resources', search: { type: '', region: '', health: '', q: '' } }),
  schedule: linkOptions({ to: '/schedules' }),
  user: linkOptions({ to: '/admin/users', search: { q: '' } }),
}
const OPERATIONS = linkOptions({ to: '/operations', search: { tab: 'all', q: '' } })
const isListed = (noun: Noun | undefined): noun is keyof typeof LISTS => noun !== undefined && noun in LISTS

/** A part of a page that could not be read: the fault, its reason and the next step. Other parts keep working. */
export const Failure = ({ error, retry, noun }: { error: unknown; retry?: () => void; noun?: Noun | undefined }) => {
  const problem = problemOf(error)
  // No object has an id that is malformed or invalid in a path.
  const missing =
    problem.status === 404 ||
    problem.code === 'bad_path' ||
    problem.violations?.some(({ pointer }) => pointer.startsWith('/params/'))
  const title = missing
    ? t.problem.not_found_title
    : problem.status === 403
      ? t.problem.forbidden_title
      : problem.status === 0
        ? t.problem.offline
        : t.problem.failed
  return (
    <div className="card flex gap-3 p-4" role="alert">
      <ShapeIcon shape="octagon" tone="bad" beside />
      <div className="flex min-w-0 flex-col items-start gap-2">
        <p className="font-semibold">{title}</p>
        <ProblemText problem={problem} detail={missing && noun ? t.problem.not_found(t.noun[noun]) : undefined} />
        {missing ? (
          <Link {...(isListed(noun) ? LISTS[noun] : OPERATIONS)} className="button">
            {t.problem.all[isListed(noun) ? noun : 'operation']}
          </Link>
        ) : retry && problem.status !== 403 ? (
          <Button onClick={retry} word={t.retry} />
        ) : null}
      </div>
    </div>
  )
}

/** Whether the object does not exist for this person, as the server answered; otherwise there is a fault. */
export const isRefusal = (error: unknown): boolean => {
  const { status } = problemOf(error)
  return status >= 400 && status < 500
}

/** Whether the server says that the object is gone, or hidden from this person. */
export const isGone = (error: unknown): boolean => [403, 404].includes(problemOf(error).status)

type Read<T> = { data: T | undefined; error: unknown }
/** The object as last read; none once it is gone. */
export const readOf = <T,>({ data, error }: Read<T>): T | undefined => (isGone(error) ? undefined : data)

type Query = { isError: boolean; isPending: boolean; error: unknown; refetch: () => unknown }

/** What a query stands for until it has an answer: gray blocks, or the fault. */
export const Unread = ({ query, noun, rows = 3 }: { query: Query; noun?: Noun; rows?: number }) =>
  query.isError ? (
    <Failure error={query.error} retry={() => void query.refetch()} noun={noun} />
  ) : query.isPending ? (
    <Loading rows={rows} />
  ) : null

type UnreadPageProps = { title: string; heading?: string; query: Query; noun: Noun }

/** A page whose object is not available: it is being read, or could not be read. */
export const UnreadPage = ({ title, heading = title, query, noun }: UnreadPageProps) => (
  <Page>
    <Heading title={title}>{heading}</Heading>
    {query.isError ? <Unread query={query} noun={noun} /> : <Loading />}
  </Page>
)
