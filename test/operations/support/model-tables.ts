/**
 * The state tables of operations.md 2 and 5.4 as data, written from the design and not from the code: the answer to a
 * command in each state, and which states may follow one another. `ok`: accepted; anything else is the refusal's code.
 */
type Table = Record<string, Record<string, string>>

/** First line: the columns, the states; each other line: a command and its answer in each of them. */
const table = (text: string): Table => {
  const [head = [], ...lines] = text
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
  return Object.fromEntries(
    lines.map(([command = '', ...answers]) => {
      if (answers.length !== head.length) throw new Error(`${command} has ${answers.length} answers`)
      return [command, Object.fromEntries(head.map((state, i) => [state, answers[i] ?? '']))]
    }),
  )
}

/** 2.3: a cancelling operation is in the column of its mode. */
export const OPERATION = table(`
                  queued                   running                  blocked                  pausing                  paused                   graceful           compensate         force              ended
pause             ok                       ok                       ok                       already_paused           already_paused           already_cancelling already_cancelling already_cancelling operation_terminal
resume            not_paused               not_paused               not_paused               ok                       ok                       already_cancelling already_cancelling already_cancelling operation_terminal
cancel            ok                       ok                       ok                       ok                       ok                       already_cancelling mode_not_allowed   mode_not_allowed   operation_terminal
cancel_compensate ok                       ok                       ok                       ok                       ok                       ok                 already_cancelling mode_not_allowed   operation_terminal
cancel_force      force_needs_cancel_first force_needs_cancel_first force_needs_cancel_first force_needs_cancel_first force_needs_cancel_first ok                 ok                 already_cancelling operation_terminal
propose_patch     ok                       ok                       ok                       ok                       ok                       already_cancelling already_cancelling already_cancelling operation_terminal
`)

/** What readers see after an accepted command, before the engine has answered. */
export const OPERATION_AFTER: Record<string, readonly string[]> = {
  pause: ['pausing', 'paused'],
  resume: ['queued', 'running', 'blocked'],
  // One whose start was never sent ends immediately.
  cancel: ['cancelling', 'cancelled'],
  cancel_compensate: ['cancelling', 'cancelled'],
  cancel_force: ['cancelling'],
}

/** 2.4 and 5.4, in an operation that is neither ended nor cancelled. `-`: not in this state; `if`: see the guards. */
export const NODE = table(`
                     pending gated ready running backoff succeeded failed outcome_unknown skipped cancelled compensating compensated compensation_failed removed
retry                -       if    -     -       -       if        if     if              if      -         -            -           -                   -
skip                 ok      ok    ok    -       ok      -         ok     ok              -       -         -            -           -                   -
mark_succeeded       -       -     -     -       -       -         ok     ok              -       -         -            -           -                   -
mark_failed          -       -     -     -       -       -         -      ok              -       -         -            -           -                   -
mark_compensated     -       -     -     -       -       -         -      -               -       -         -            -           ok                  -
set_output           -       -     -     -       -       if        -      -               -       -         -            -           -                   -
set_input            if      if    if    -       -       -         if     -               -       -         -            -           -                   -
trigger_compensation -       -     -     -       -       if        -      -               -       -         -            -           if                  -
`)

/** 2.5. `used`: approved, and something behind it has begun. */
export const GATE = table(`
        armed       waiting approved        used             rejected        expired bypassed        cancelled
approve not_reached ok      already_decided already_consumed already_decided expired already_decided cancelled
reject  not_reached ok      if              already_consumed already_decided expired already_decided cancelled
`)

/** 2.6. `overtaken`: not applicable, because another patch came first. */
export const PATCH = table(`
        awaiting_approval approved     applied      rejected     withdrawn    expired      overtaken           not_applicable
approve if                patch_closed patch_closed patch_closed patch_closed patch_closed base_revision_moved patch_closed
reject  ok                patch_closed patch_closed patch_closed patch_closed patch_closed base_revision_moved patch_closed
`)

/** Which states follow which, as the timeline reports them. `reset` is the effect of a retry. */
const edges = (text: string): Record<string, ReadonlySet<string>> =>
  Object.fromEntries(
    text
      .trim()
      .split('\n')
      .map((line) => {
        const [from = '', to = ''] = line.split(':')
        return [from.trim(), new Set(to.trim().split(/\s+/))]
      }),
  )

export const EDGES = {
  // A node that is started as soon as it may be is not reported as ready; other inputs, a patch or a refused claim put
  // it back.
  node: edges(`
    pending: reset pending gated ready dispatched running succeeded failed skipped cancelled removed
    gated: reset pending gated ready dispatched running failed skipped cancelled removed
    ready: reset pending gated ready dispatched running succeeded failed outcome_unknown backoff skipped cancelled removed
    dispatched: reset pending gated ready dispatched running backoff succeeded failed outcome_unknown skipped cancelled removed
    running: reset dispatched running succeeded failed outcome_unknown backoff ready gated cancelled
    backoff: reset ready gated dispatched running skipped cancelled
    succeeded: reset compensating
    failed: reset skipped succeeded pending
    outcome_unknown: reset skipped succeeded failed
    skipped: reset
    reset: reset gated ready dispatched running succeeded failed outcome_unknown skipped cancelled removed
    compensating: compensated compensation_failed
    compensation_failed: compensating compensated
    compensated: none
    cancelled: none
    removed: none
  `),
  gate: edges(`
    armed: waiting approved armed reopened cancelled
    waiting: approved rejected expired bypassed waiting cancelled reopened
    reopened: waiting approved rejected expired bypassed cancelled reopened
    approved: armed waiting rejected reopened approved cancelled
    rejected: armed rejected reopened
    expired: armed expired reopened
    bypassed: armed bypassed
    cancelled: none
  `),
  patch: edges(`
    awaiting_approval: approved rejected withdrawn expired not_applicable
    approved: applied not_applicable
    applied: none
    rejected: none
    withdrawn: none
    expired: none
    not_applicable: none
  `),
  operation: edges(`
    queued: running blocked pausing cancelling succeeded succeeded_with_exceptions failed
    running: blocked pausing cancelling succeeded succeeded_with_exceptions failed
    blocked: running pausing cancelling succeeded succeeded_with_exceptions failed
    pausing: paused resumed cancelling
    paused: paused resumed cancelling
    resumed: running blocked pausing cancelling succeeded succeeded_with_exceptions failed
    cancelling: cancelling cancelled failed timed_out
    succeeded: none
    succeeded_with_exceptions: none
    failed: none
    cancelled: none
    timed_out: none
  `),
}
