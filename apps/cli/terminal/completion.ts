import { type Command, type Context, commandOf, GLOBAL, type Option } from '../command.ts'
import { short } from './output.ts'

/** The script that a shell runs once: it asks this program for the next words and adds file names. */
export const SHELLS: Record<string, string> = {
  bash: `# eval "$(signalbox completion bash)"
_signalbox() {
  local IFS=$'\\n'
  COMPREPLY=($(signalbox completion words -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _signalbox signalbox`,
  zsh: `# eval "$(signalbox completion zsh)"
_signalbox() {
  compadd -- "\${(@f)$(signalbox completion words -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}" || _files
}
compdef _signalbox signalbox`,
  fish: `# signalbox completion fish | source
function __signalbox_words
  set -l current (commandline -ct)
  signalbox completion words -- (commandline -opc)[2..-1] "$current" 2>/dev/null
end
complete -c signalbox -a '(__signalbox_words)'`,
}

/** The list whose ids complete an argument: path, member and query; `whole` ids are typed in full. */
type Ids = { path: string; member: string; query?: Record<string, string>; whole?: true; all?: true }
const RECENT = { page_size: '20' }
const OPERATIONS: Ids = { path: '/api/v1/operations', member: 'operation_id', query: RECENT }
const IDS: Record<string, Ids> = {
  OPERATION: OPERATIONS,
  OP: OPERATIONS,
  ID: OPERATIONS,
  INTENT: { path: '/api/v1/intents', member: 'intent_id', query: RECENT },
  PLAN: { path: '/api/v1/intents', member: 'latest_plan_id', query: RECENT },
  GATE: { path: '/api/v1/gates', member: 'gate_id', query: { for: 'all', ...RECENT }, whole: true },
  RESOURCE: { path: '/api/v1/resources', member: 'resource_id', query: { page_size: '200' }, whole: true },
  TYPE: { path: '/api/v1/resource-types', member: 'type_key', whole: true, all: true },
  CAPABILITY: { path: '/api/v1/capabilities/definitions', member: 'capability_key', whole: true, all: true },
  SESSION: { path: '/api/v1/sessions', member: 'id' },
}

const idsOf = async ({ api }: Context, { path, member, query = {}, whole, all }: Ids): Promise<string[]> => {
  const rows = await api.list<Record<string, string | null>>(path, query, all === true)
  return rows.flatMap(({ [member]: id }) => (id ? [whole ? id : short(id)] : []))
}

const nodesOf = async (context: Context, op: string | undefined): Promise<string[]> => {
  if (op === undefined) return []
  const found = await idsOf(context, { ...OPERATIONS, query: { page_size: '500' }, whole: true })
  const id = found.find((operation_id) => operation_id.endsWith(op)) ?? op
  return idsOf(context, { path: `/api/v1/operations/${id}/nodes`, member: 'node_id', query: RECENT, whole: true })
}

/**
 * The words that may replace the last typed one: nouns, verbs, options, and recent ids that the signed-in person can
 * see. If the server does not answer, there are no ids and no error.
 */
export const wordsAfter = async (
  context: Context,
  commands: readonly Command[],
  typed: string[],
): Promise<string[]> => {
  const current = typed.at(-1) ?? ''
  const before = typed.slice(0, -1)
  const found = await candidates(context, commands, before, current).catch(() => [])
  return [...new Set(found)].filter((word) => word.startsWith(current))
}

const candidates = async (context: Context, commands: readonly Command[], before: string[], current: string) => {
  const command = commandOf(commands, before)
  if (!command) return before.length < 2 ? wordOf(commands, before) : []
  const options: Record<string, Option> = { ...GLOBAL, ...command.options }
  if (current.startsWith('-')) return Object.keys(options).map((name) => `--${name}`)
  const given = before.slice(command.name.split(' ').length)
  const last = given.at(-1) ?? ''
  const choices = optionOf(options, last)?.choices
  if (choices) return [...choices]
  if (last === '--op') return idsOf(context, OPERATIONS)
  if (takesValue(options, last)) return []
  const places = (command.takes ?? '').split(' ').map((name) => name.replace(/[^A-Z]/g, ''))
  const place = given.filter((word, at) => !word.startsWith('-') && !takesValue(options, given[at - 1] ?? '')).length
  if (places[place] === 'NODE')
    return nodesOf(context, given.includes('--op') ? given[given.indexOf('--op') + 1] : undefined)
  const ids = IDS[places[place] ?? '']
  return ids ? idsOf(context, ids) : []
}

/** Nouns first, then the verbs of the noun. */
const wordOf = (commands: readonly Command[], [noun]: string[]): string[] =>
  commands.flatMap(({ name }) => {
    const [first = '', second] = name.split(' ')
    if (noun === undefined) return [first]
    return first === noun && second !== undefined ? [second] : []
  })

const optionOf = (options: Record<string, Option>, word: string): Option | undefined =>
  Object.entries(options).find(([name, { short: letter }]) => word === `--${name}` || word === `-${letter}`)?.[1]

const takesValue = (options: Record<string, Option>, word: string): boolean =>
  optionOf(options, word)?.type === 'string'
