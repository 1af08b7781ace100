import { type Command, type Context, inHeader, text } from './command.ts'
import { agentCommands } from './commands/agent.ts'
import { auditCommands } from './commands/audit.ts'
import { catalogCommands } from './commands/catalog.ts'
import { exploreCommands } from './commands/explore.ts'
import { importCommands } from './commands/import.ts'
import { machineCommands } from './commands/machine.ts'
import { resourceCommands } from './commands/resource.ts'
import { sessionCommands } from './commands/session.ts'
import { toolCommands } from './commands/tools.ts'
import { totpCommands } from './commands/totp.ts'
import { userCommands } from './commands/user.ts'
import { CliError, EXIT, type ExitCode, noDryRun, usageError } from './errors.ts'
import { evidenceCommands } from './operations/evidence.ts'
import { followCommands } from './operations/follow.ts'
import { gateCommands } from './operations/gate.ts'
import { notifyCommands } from './operations/notify.ts'
import { operationCommands } from './operations/operation.ts'
import { packCommands } from './operations/pack.ts'
import { patchCommands } from './operations/patch.ts'
import { planCommands } from './operations/plan.ts'
import { scheduleCommands } from './operations/schedule.ts'
import { steerCommands } from './operations/steer.ts'
import { type Line, parseLine } from './program.ts'
import { createApi } from './session/api.ts'
import { contextCommands, urlOf } from './session/contexts.ts'
import { createCredentials } from './session/credentials.ts'
import { createOutput, type Format, harmless, showTimesIn } from './terminal/output.ts'
import { isList, repeatList } from './terminal/repeat.ts'
import { selectionOf } from './terminal/select.ts'
import { versionOfClient } from './version.ts'

export const COMMANDS: readonly Command[] = [
  ...sessionCommands,
  ...totpCommands,
  ...contextCommands,
  ...toolCommands(() => COMMANDS),
  ...gateCommands,
  ...planCommands,
  ...scheduleCommands,
  ...notifyCommands,
  ...operationCommands,
  ...followCommands,
  ...steerCommands,
  ...patchCommands,
  ...evidenceCommands,
  ...auditCommands,
  ...userCommands,
  ...machineCommands,
  ...agentCommands,
  ...packCommands,
  ...resourceCommands,
  ...exploreCommands,
  ...catalogCommands,
  ...importCommands,
]

/** Commands that change files of this machine, which no request tells. */
const ACTS_HERE = /^(login|logout|context (set|use|remove)|pack init)$/

const say = (line: string): void => void process.stderr.write(`${line}\n`)

/** Runs one command line and returns its exit code; a failure is reported on stderr. */
export const run = async (argv: string[], env: NodeJS.ProcessEnv = process.env): Promise<ExitCode> => {
  try {
    const line = parseLine(COMMANDS, argv, versionOfClient())
    return line === 'shown' ? EXIT.done : await carryOut(line, env)
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    for (const line of error.lines) say(harmless(line))
    return error.exit
  }
}

/** Runs the parsed line; if an option is at fault, points to the help of the command. */
const carryOut = async (line: Line, env: NodeJS.ProcessEnv): Promise<ExitCode> => {
  try {
    return await runCommand(line, env)
  } catch (error) {
    if (!(error instanceof CliError) || error.exit !== EXIT.usage || !error.message.startsWith('--')) throw error
    throw usageError(error.message, `See: signalbox ${line.command.name} --help`)
  }
}

const runCommand = async ({ command, args, values }: Line, env: NodeJS.ProcessEnv): Promise<ExitCode> => {
  if (values.watch === true && !isList(command))
    throw usageError(`--watch repeats lists; ${command.name} is not a list.`)
  const output = text(values, 'output')
  if (values.jsonl === true && output !== undefined && output !== 'json')
    throw usageError(`--jsonl prints JSON: leave out -o ${output}.`)
  if (values['dry-run'] === true && ACTS_HERE.test(command.name)) throw noDryRun()
  chooseZone(text(values, 'zone') ?? 'UTC')
  const credentials = createCredentials(env)
  const context: Context = {
    api: createApi({
      url: urlOf({ url: text(values, 'url'), context: text(values, 'context') }, env),
      credentials,
      token: env.SIGNALBOX_TOKEN || undefined,
      idempotency_key: inHeader(values, 'idempotency-key'),
      dry_run: values['dry-run'] === true,
      timeout_ms: command.timeout_ms,
      repeats: command.repeats,
      say,
    }),
    credentials,
    env,
    out: createOutput({
      format: (output ?? 'table') as Format,
      jsonl: values.jsonl === true,
      select: await selectionOf(text(values, 'select')),
    }),
    all: values.all === true,
    yes: values.yes === true,
    dry_run: values['dry-run'] === true,
    idempotency_key: text(values, 'idempotency-key'),
  }
  const act = async () => {
    try {
      const ended = (await command.run(context, args, values)) ?? EXIT.done
      await context.out.settled()
      return ended
    } catch (error) {
      // Parts that were printed before. A selection that failed too says less than this error.
      await context.out.settled().catch(() => {})
      throw error
    }
  }
  return values.watch === true ? repeatList(act, context.out) : act()
}

const chooseZone = (name: string): void => {
  try {
    showTimesIn(name)
  } catch {
    throw usageError(`--zone takes a name such as Europe/Berlin, not ${name}.`)
  }
}
