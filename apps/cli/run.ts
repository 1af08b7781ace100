import { parseArgs } from 'node:util'
import { createApi } from './api.ts'
import { type Command, type Context, commandOf, GLOBAL, text } from './command.ts'
import { auditCommands } from './commands/audit.ts'
import { catalogCommands } from './commands/catalog.ts'
import { evidenceCommands } from './commands/evidence.ts'
import { gateCommands } from './commands/gate.ts'
import { importCommands } from './commands/import.ts'
import { operationCommands } from './commands/operation.ts'
import { patchCommands } from './commands/patch.ts'
import { planCommands } from './commands/plan.ts'
import { resourceCommands } from './commands/resource.ts'
import { sessionCommands } from './commands/session.ts'
import { toolCommands } from './commands/tools.ts'
import { userCommands } from './commands/user.ts'
import { createCredentials } from './credentials.ts'
import { CliError, EXIT, type ExitCode, usageError } from './errors.ts'
import { createOutput, dim, type Format, showTimesIn } from './output.ts'

const COMMANDS: readonly Command[] = [
  ...sessionCommands,
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

const FORMATS: readonly string[] = ['table', 'json', 'yaml', 'id'] satisfies Format[]

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
  const command = commandOf(COMMANDS, argv)
  if (!command) {
    if (argv.length === 0 || argv.some((word) => word === '--help' || word === '-h')) return help(argv[0])
    throw usageError(
      `There is no command "${argv
        .filter((word) => !word.startsWith('-'))
        .slice(0, 2)
        .join(' ')}".`,
    )
  }
  const { values, positionals } = parse(command, argv.slice(command.name.split(' ').length))
  if (values.help) return help(command.name)
  const takes = (command.takes ?? '').split(' ').filter(Boolean)
  const required = takes.filter((name) => !name.startsWith('['))
  const most = takes.at(-1)?.endsWith('…]') ? Number.POSITIVE_INFINITY : takes.length
  if (positionals.length < required.length || positionals.length > most)
    throw usageError(`usage: signalbox ${command.name} ${command.takes ?? ''}`.trimEnd())
  const format = text(values, 'output') ?? 'table'
  if (!FORMATS.includes(format)) throw usageError(`-o takes one of ${FORMATS.join(', ')}, not ${format}.`)
  chooseZone(text(values, 'zone') ?? 'UTC')
  const credentials = createCredentials(env)
  const url = (text(values, 'url') ?? env.SIGNALBOX_URL ?? 'http://localhost:8080').replace(/\/+$/, '')
  const context: Context = {
    api: createApi({
      url,
      credentials,
      token: env.SIGNALBOX_TOKEN || undefined,
      idempotency_key: text(values, 'idempotency-key'),
      timeout_ms: command.timeout_ms,
    }),
    credentials,
    env,
    out: createOutput({ format: format as Format, jsonl: values.jsonl === true }),
    all: values.all === true,
    yes: values.yes === true,
    dry_run: values['dry-run'] === true,
    idempotency_key: text(values, 'idempotency-key'),
  }
  return (await command.run(context, positionals, values)) ?? EXIT.done
}

const chooseZone = (name: string): void => {
  try {
    showTimesIn(name)
  } catch {
    throw usageError(`--zone takes a name like Europe/Berlin, not ${name}.`)
  }
}

const parse = ({ options = {} }: Command, args: string[]) => {
  try {
    const parsed = parseArgs({ args, options: { ...GLOBAL, ...options }, allowPositionals: true })
    return { values: parsed.values as Record<string, string | boolean | undefined>, positionals: parsed.positionals }
  } catch (error) {
    throw usageError((error as Error).message)
  }
}

const help = (about: string | undefined): ExitCode => {
  const shown = COMMANDS.filter(
    ({ name }) => !about || about.startsWith('-') || name === about || name.startsWith(`${about} `),
  )
  const usage = ({ name, takes = '', options = {} }: Command) =>
    [
      `signalbox ${name}`,
      takes,
      ...Object.entries(options).map(([option, { type }]) => `[--${option}${type === 'string' ? ' …' : ''}]`),
    ]
      .filter(Boolean)
      .join(' ')
  for (const command of shown) process.stdout.write(`${usage(command)}\n    ${dim(command.about)}\n`)
  process.stdout.write(
    `\nEach takes --url URL (or SIGNALBOX_URL), -o table|json|yaml|id, --zone NAME, --jsonl, --all, --yes, --dry-run, --idempotency-key KEY.\n` +
      'Exit codes: 0 done, 1 error, 2 usage, 3 waited too long, 4 waiting for a person, 5 failed, 6 cancelled, 7 refused, 8 there would be changes, 9 sign in, 130 Ctrl-C.\n',
  )
  return EXIT.done
}
