import { setTimeout as delay } from 'node:timers/promises'
import { type Command, type Context, text } from './command.ts'
import { auditCommands } from './commands/audit.ts'
import { catalogCommands } from './commands/catalog.ts'
import { importCommands } from './commands/import.ts'
import { resourceCommands } from './commands/resource.ts'
import { sessionCommands } from './commands/session.ts'
import { toolCommands } from './commands/tools.ts'
import { userCommands } from './commands/user.ts'
import { CliError, EXIT, type ExitCode, usageError } from './errors.ts'
import { evidenceCommands } from './operations/evidence.ts'
import { gateCommands } from './operations/gate.ts'
import { operationCommands } from './operations/operation.ts'
import { patchCommands } from './operations/patch.ts'
import { planCommands } from './operations/plan.ts'
import { parseLine } from './program.ts'
import { createApi } from './session/api.ts'
import { contextCommands, urlOf } from './session/contexts.ts'
import { createCredentials } from './session/credentials.ts'
import { createOutput, type Format, showTimesIn } from './terminal/output.ts'
import { selectionOf } from './terminal/select.ts'
import { versionOfClient } from './version.ts'

const COMMANDS: readonly Command[] = [
  ...sessionCommands,
  ...contextCommands,
  ...toolCommands(() => COMMANDS),
  ...gateCommands,
  ...planCommands,
  ...operationCommands,
  ...patchCommands,
  ...evidenceCommands,
  ...auditCommands,
  ...userCommands,
  ...resourceCommands,
  ...catalogCommands,
  ...importCommands,
]

/** Runs one command line and answers its exit code; every end that is not a success is told on stderr. */
export const run = async (argv: string[], env: NodeJS.ProcessEnv = process.env): Promise<ExitCode> => {
  try {
    return await runCommand(argv, env)
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    for (const line of error.lines) process.stderr.write(`${line}\n`)
    return error.exit
  }
}

const runCommand = async (argv: string[], env: NodeJS.ProcessEnv): Promise<ExitCode> => {
  const line = parseLine(COMMANDS, argv, versionOfClient())
  if (line === 'shown') return EXIT.done
  const { command, args, values } = line
  chooseZone(text(values, 'zone') ?? 'UTC')
  const credentials = createCredentials(env)
  const context: Context = {
    api: createApi({
      url: urlOf({ url: text(values, 'url'), context: text(values, 'context') }, env),
      credentials,
      token: env.SIGNALBOX_TOKEN || undefined,
      idempotency_key: text(values, 'idempotency-key'),
      timeout_ms: command.timeout_ms,
    }),
    credentials,
    env,
    out: createOutput({
      format: (text(values, 'output') ?? 'table') as Format,
      jsonl: values.jsonl === true,
      select: await selectionOf(text(values, 'select')),
    }),
    all: values.all === true,
    yes: values.yes === true,
    dry_run: values['dry-run'] === true,
    idempotency_key: text(values, 'idempotency-key'),
  }
  const act = async () => {
    const ended = (await command.run(context, args, values)) ?? EXIT.done
    await context.out.settled()
    return ended
  }
  if (values.watch !== true) return act()
  if (!/(^| )(list|inbox)$/.test(command.name)) throw usageError(`--watch repeats lists; ${command.name} is none.`)
  return watchList(act)
}

const WATCH_MS = 2000

/** Prints a list again whenever it changes; at a terminal in the same place. Ends by Ctrl-C. */
const watchList = async (print: () => Promise<ExitCode>): Promise<ExitCode> => {
  let shown: string | undefined
  process.once('SIGINT', () => process.exit(EXIT.interrupted))
  for (;;) {
    const now = await captured(print)
    if (now !== shown) process.stdout.write(process.stdout.isTTY ? `\u001b[H\u001b[2J${now}` : now)
    shown = now
    await delay(WATCH_MS)
  }
}

/** What `print` would have written to stdout. */
const captured = async (print: () => Promise<unknown>): Promise<string> => {
  const write = process.stdout.write
  let text = ''
  process.stdout.write = ((chunk: string | Uint8Array) => {
    text += String(chunk)
    return true
  }) as typeof write
  try {
    await print()
    return text
  } finally {
    process.stdout.write = write
  }
}

const chooseZone = (name: string): void => {
  try {
    showTimesIn(name)
  } catch {
    throw usageError(`--zone takes a name like Europe/Berlin, not ${name}.`)
  }
}
