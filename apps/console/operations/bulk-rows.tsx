import type { OperationRow } from '../api/types.ts'
import { mayRepeat, type Result } from '../command/each.ts'
import { Unsettled } from '../command/together.tsx'
import { Button } from '../forms/button.tsx'
import { shortId } from '../kit/format.ts'
import { ProblemText } from '../ui/failure.tsx'
import { Status } from '../values/status.tsx'
import { Said } from '../votes/brief.tsx'
import { t } from '../words/index.ts'
import { tOperation } from '../words/operation.ts'
import { tCommand } from '../words/operations/command.ts'
import type { Parted } from './bulk.ts'
import { EffectText, type Mode, type OperationCommand } from './effects.tsx'

const words = tOperation.operations.bulk

type AbleProps = { able: Parted['able']; command: OperationCommand; mode: Mode; results: ReadonlyMap<string, Result> }

/** The operations that the command is sent to: each with its effect, and then with its answer. */
export const Able = ({ able, command, mode, results }: AbleProps) => (
  <section aria-label={words.able(able.length)} className="flex flex-col gap-2">
    <h3 className="font-semibold">{words.able(able.length)}</h3>
    <ul className="flex flex-col divide-y divide-line">
      {able.map(({ row, effect }) => {
        const result = results.get(row.operation_id)
        return (
          <li key={row.operation_id} className="flex flex-wrap items-center gap-x-3 gap-y-1 py-2">
            <div className="min-w-0 flex-1 wrap-anywhere">
              <Name row={row} />
              <div className="text-muted">
                {effect ? <EffectText command={command} mode={mode} effect={effect} /> : <p>{tCommand.no_dry_run}</p>}
              </div>
            </div>
            {result ? <Answer result={result} /> : null}
          </li>
        )
      })}
    </ul>
  </section>
)

const Name = ({ row: { title, operation_id, environment } }: { row: OperationRow }) => (
  <p className="wrap-anywhere">
    <Said>{title}</Said> <code title={operation_id}>{shortId(operation_id)}</code>
    {environment === null ? null : (
      <span className="text-muted">
        {' · '}
        <Said>{environment}</Said>
      </span>
    )}
  </p>
)

const Answer = ({ result }: { result: Result }) =>
  result.state !== 'done' ? (
    <Unsettled result={result} held={words.held} />
  ) : result.recorded ? (
    <span>{words.recorded}</span>
  ) : (
    <Status state={result.status} />
  )

/** Every selected operation that gets no command, and the server's reason. */
export const LeftOut = ({ out, again }: { out: Parted['out']; again: (() => void) | undefined }) => (
  <section aria-label={words.out} className="flex flex-col items-start gap-2">
    <h3 className="font-semibold">{words.out}</h3>
    <ul className="flex flex-col gap-2">
      {out.map(({ row, problem }) => (
        <li key={row.operation_id}>
          <Name row={row} />
          <div className="text-muted">
            <ProblemText problem={problem} />
          </div>
        </li>
      ))}
    </ul>
    {again && out.some(({ problem }) => mayRepeat(problem)) ? <Button onClick={again} word={t.retry} /> : null}
  </section>
)
