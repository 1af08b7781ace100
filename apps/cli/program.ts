import { Argument, CommanderError, Command as Node, Option as Switch } from 'commander'
import { type Command, commandOf, GLOBAL, type Option, type Values } from './command.ts'
import { usageError } from './errors.ts'
import { dim } from './terminal/output.ts'

export type Line = { command: Command; args: string[]; values: Values }

const EXIT_CODES =
  'Exit codes: 0 done, 1 error, 2 usage, 3 timed out, 4 waiting for a person, 5 failed, 6 canceled, 7 refused, 8 changes pending (plan show --exit-code, import --dry-run), 9 sign in, 130 Ctrl-C.'

/** The subject of each noun, for the first page of the help. */
const NOUNS: Record<string, string> = {
  session: 'your own sessions',
  context: 'the platforms that you work with',
  gate: 'gates: decisions that operations wait for',
  intent: 'intents: the desired result',
  plan: 'plans: how an intent is carried out',
  op: 'operations: started plans',
  patch: 'patches: changes of a running graph',
  evidence: 'the evidence of an operation',
  audit: 'who did what',
  user: 'accounts',
  machine: 'service accounts and their keys',
  provider: 'identity providers',
  resource: 'resources of the catalog',
  type: 'types of resources',
  topology: 'regions and the places inside them',
  capability: 'what resources offer to others',
  schedule: 'intents that run on a schedule',
  notify: 'where and when you are notified',
  totp: 'your authenticator app',
  import: 'imports from other systems',
  pack: 'packs of procedures, for their authors',
}

const switchOf = (name: string, { type, short, about, value, choices }: Option): Switch => {
  const shape = type === 'string' ? ` <${value ?? name.toUpperCase()}>` : ''
  const made = new Switch(`${short ? `-${short}, ` : ''}--${name}${shape}`, about)
  return choices ? made.choices([...choices]) : made
}

/** Turns `GATE`, `[NAME]` and `[WORD…]` into commander's arguments. */
const argumentOf = (shown: string): Argument => {
  const name = shown.replace(/[[\]…]/g, '')
  const written = shown.endsWith('…]') ? `[${name}...]` : shown.startsWith('[') ? `[${name}]` : `<${name}>`
  return new Argument(written)
}

/** Turns commander's refusals into usage errors; the output of `--help` and `--version` goes to stdout. */
const quietly = (node: Node): Node =>
  node
    .exitOverride()
    .configureOutput({ writeErr: () => {}, outputError: () => {} })
    .showHelpAfterError(false)

const describe = (leaf: Node, { about, takes = '', options = {}, examples }: Command): Node => {
  leaf.description(about).helpOption('-h, --help', 'print help')
  for (const name of takes.split(' ').filter(Boolean)) leaf.addArgument(argumentOf(name))
  for (const [name, option] of Object.entries(options)) leaf.addOption(switchOf(name, option))
  leaf.optionsGroup('Options of every command:')
  for (const [name, option] of Object.entries<Option>(GLOBAL))
    if (!options[name]) leaf.addOption(switchOf(name, option))
  return leaf.addHelpText(
    'after',
    `\nExamples:\n${examples.map((line) => `  ${dim('$')} signalbox ${line}`).join('\n')}`,
  )
}

/** How many words an option of every command takes: with its value, 2, or 1 if they are joined; 0 for other words. */
const lengthOf = (word: string): number => {
  for (const [name, { type, short = '' }] of Object.entries<Option>(GLOBAL)) {
    const brief = short && `-${short}`
    if (word === `--${name}` || (brief && word === brief)) return type === 'string' ? 2 : 1
    if (word.startsWith(`--${name}=`) || (brief && type === 'string' && word.startsWith(brief))) return 1
  }
  return 0
}

/** The line with its leading options of every command after the command, where the parser takes them. */
const reordered = (commands: readonly Command[], argv: readonly string[]): string[] => {
  let at = 0
  for (let length = lengthOf(argv[at] ?? ''); length > 0; length = lengthOf(argv[at] ?? '')) at += length
  const rest = argv.slice(at)
  if (at > 0 && rest.length === 0) throw usageError('There is no command after the options.', 'See: signalbox --help')
  const words = commandOf(commands, rest)?.name.split(' ').length
  return words === undefined ? rest : [...rest.slice(0, words), ...argv.slice(0, at), ...rest.slice(words)]
}

/** Parses a line's command. 'shown' after help or version. Usage errors name the nearest command, option or value. */
export const parseLine = (commands: readonly Command[], given: readonly string[], version: string): Line | 'shown' => {
  const argv = reordered(commands, given)
  let found: Line | undefined
  const root = quietly(new Node('signalbox'))
    .description('Reviewed plans for infrastructure, from a terminal.')
    // The version option comes before a command: in `resource update --version 3` it is an option of the command.
    .enablePositionalOptions()
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .helpCommand('help [command]', 'print the help of a command')
    .addHelpText('after', `\n${EXIT_CODES}`)
  const nouns = new Map<string, Node>()
  const parentOf = (noun: string, hasVerb: boolean): Node => {
    if (!hasVerb) return root
    const known = nouns.get(noun)
    if (known) return known
    const made = quietly(root.command(noun).description(NOUNS[noun] ?? '')).helpCommand(false)
    nouns.set(noun, made)
    return made
  }
  for (const command of commands) {
    const [noun = '', verb] = command.name.split(' ')
    const leaf = describe(quietly(parentOf(noun, verb !== undefined).command(verb ?? noun)), command)
    // A one-word command may also have verbs: `agent`, `agent conformance`.
    if (verb === undefined) nouns.set(noun, leaf.helpCommand(false))
    leaf.action(() => {
      const empty = leaf.registeredArguments.find((one, at) => !one.variadic && leaf.args[at] === '')
      if (empty) throw usageError(`${empty.name()} is empty.`, `See: signalbox ${command.name} --help`)
      found = { command, args: leaf.args, values: valuesOf(leaf) }
    })
  }
  if (argv.length === 0) {
    root.outputHelp()
    return 'shown'
  }
  try {
    root.parse(argv[0] === 'help' ? helpOf(commands, argv.slice(1)) : argv, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.exitCode === 0) return 'shown'
    if (error.code === 'commander.help') {
      nouns.get(argv[0] ?? '')?.outputHelp()
      const first = commands.find(({ name }) => name.startsWith(`${argv[0]} `))?.name
      throw usageError(`"${argv[0]}" needs one of the commands above.`, `Try: signalbox ${first}`)
    }
    const path = commandOf(commands, argv)?.name ?? (nouns.has(argv[0] ?? '') ? argv[0] : undefined)
    // Commander would guess --jsonl.
    const json = error.code === 'commander.unknownOption' && /'--(json|yaml)'/.exec(error.message)?.[1]
    if (json) throw usageError(`Unknown option '--${json}'. Did you mean -o ${json}?`)
    throw usageError(sentenceOf(error.message), `See: signalbox ${path === undefined ? '' : `${path} `}--help`)
  }
  return found ?? 'shown'
}

/** `help op list` is `op list --help`. */
const helpOf = (commands: readonly Command[], asked: readonly string[]): string[] => {
  const path = asked.join(' ')
  if (path === '' || commands.some(({ name }) => name === path || name.startsWith(`${path} `)))
    return [...asked, '--help']
  throw usageError(`There is no command "${path}".`, 'See: signalbox --help')
}

/** Commander's error as a sentence: `Unknown command 'opp'. Did you mean op?` */
const sentenceOf = (message: string): string => {
  const [fault = '', guess = ''] = message.replace(/^error: /, '').split('\n')
  const sentence = `${fault.charAt(0).toUpperCase()}${fault.slice(1).replace(/\.$/, '')}.`
  return guess === '' ? sentence : `${sentence} ${guess.replace(/[()]/g, '')}`
}

/** Values by the option names that commands use: `dry-run`, not `dryRun`. */
const valuesOf = (leaf: Node): Values =>
  Object.fromEntries(leaf.options.map((option) => [option.name(), leaf.getOptionValue(option.attributeName())]))
