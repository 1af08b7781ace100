import { parseArgs } from 'node:util'
import { createApi } from './api.ts'
import { type Command, type Context, text } from './command.ts'
import { auditCommands } from './commands/audit.ts'
import { evidenceCommands } from './commands/evidence.ts'
import { gateCommands } from './commands/gate.ts'
import { importCommands } from './commands/import.ts'
import { operationCommands } from './commands/operation.ts'
import { patchCommands } from './commands/patch.ts'
import { planCommands } from './commands/plan.ts'
import { resourceCommands } from './commands/resource.ts'
import { sessionCommands } from './commands/session.ts'
import { userCommands } from './commands/user.ts'
import { createCredentials } from './credentials.ts'
import { CliError, EXIT, type ExitCode, usageError } from './errors.ts'
import { createOutput, dim, type Format } from './output.ts'

export const COMMANDS: readonly Command[] = [
  ...sessionCommands,
  ...gateCommands,
  ...planCommands,
  ...operationCommands,
  ...patchCommands,
  ...evidenceCommands,
  ...auditCommands,
  ...userCommands,
  ...resourceCommands,
  ...importCommands,
]

const FORMATS: readonly string[] = ['table', 'json', 'yaml', 'id'] satisfies Format[]
const GLOBAL = {
  url: { type: 'string' },
  output: { type: 'string', short: 'o' },
  jsonl: { type: 'boolean' },
  all: { type: 'boolean' },
  yes: { type: 'boolean', short: 'y' },
  'dry-run': { type: 'boolean' },
  'idempotency-key': { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const

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
  const command = find(argv)
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
  if (positionals.length < required.length || positionals.length > takes.length)
    throw usageError(`usage: signalbox ${command.name} ${command.takes ?? ''}`.trimEnd())
  const format = text(values, 'output') ?? 'table'
  if (!FORMATS.includes(format)) throw usageError(`-o takes one of ${FORMATS.join(', ')}, not ${format}.`)
  const url = (text(values, 'url') ?? env.SIGNALBOX_URL ?? 'http://localhost:8080').replace(/\/+$/, '')
  const context: Context = {
    api: createApi({
      url,
      credentials: createCredentials(env),
      token: env.SIGNALBOX_TOKEN || undefined,
      idempotency_key: text(values, 'idempotency-key'),
    }),
    out: createOutput({ format: format as Format, jsonl: values.jsonl === true }),
    all: values.all === true,
    yes: values.yes === true,
    dry_run: values['dry-run'] === true,
    idempotency_key: text(values, 'idempotency-key'),
  }
  return (await command.run(context, positionals, values)) ?? EXIT.done
}

const find = (argv: string[]): Command | undefined => {
  const [noun = '', verb = ''] = argv
  return COMMANDS.find(({ name }) => name === `${noun} ${verb}`) ?? COMMANDS.find(({ name }) => name === noun)
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
    `\nEach takes --url URL (or SIGNALBOX_URL), -o table|json|yaml|id, --jsonl, --all, --yes, --dry-run, --idempotency-key KEY.\n` +
      'Exit codes: 0 done, 1 error, 2 usage, 3 waited too long, 4 waiting for a person, 5 failed, 6 cancelled, 7 refused, 8 there would be changes, 9 sign in.\n',
  )
  return EXIT.done
}
