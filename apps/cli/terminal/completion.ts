import { type Command, type Context, commandOf, GLOBAL, type Option } from '../command.ts'
import { short } from './output.ts'

/** The script that a shell runs once: it asks this program for the next words, and adds file names. */
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

const RECENT = { page_size: '20' }

/** The recent ids that stand for an argument, as people type them. */
const IDS: Record<string, (context: Context, op: string | undefined) => Promise<string[]>> = {
  OPERATION: async ({ api }) =>
    (await api.list<{ operation_id: string }>('/api/v1/operations', RECENT, false)).map((row) =>
      short(row.operation_id),
    ),
  INTENT: async ({ api }) =>
    (await api.list<{ intent_id: string }>('/api/v1/intents', RECENT, false)).map((row) => short(row.intent_id)),
  PLAN: async ({ api }) =>
    (await api.list<{ latest_plan_id: string | null }>('/api/v1/intents', RECENT, false)).flatMap((row) =>
      row.latest_plan_id ? [short(row.latest_plan_id)] : [],
    ),
  GATE: async ({ api }) =>
    (await api.list<{ gate_id: string }>('/api/v1/gates', { for: 'all', ...RECENT }, false)).map((row) => row.gate_id),
  RESOURCE: async ({ api }) =>
    (await api.list<{ resource_id: string }>('/api/v1/resources', { page_size: '200' }, false)).map(
      (row) => row.resource_id,
    ),
  TYPE: async ({ api }) =>
    (await api.list<{ type_key: string }>('/api/v1/resource-types', {}, true)).map((row) => row.type_key),
  CAPABILITY: async ({ api }) =>
    (await api.list<{ capability_key: string }>('/api/v1/capabilities/definitions', {}, true)).map(
      (row) => row.capability_key,
    ),
  SESSION: async ({ api }) =>
    (await api.list<{ id: string }>('/api/v1/sessions', {}, false)).map((row) => short(row.id)),
  NODE: async ({ api }, op) => {
    if (op === undefined) return []
    const found = await api.list<{ operation_id: string }>('/api/v1/operations', { page_size: '500' }, false)
    const id = found.find(({ operation_id }) => operation_id.endsWith(op))?.operation_id ?? op
    const nodes = await api.list<{ node_id: string }>(`/api/v1/operations/${id}/nodes`, RECENT, false)
    return nodes.map(({ node_id }) => node_id)
  },
}
IDS.OP = IDS.OPERATION as (typeof IDS)[string]
IDS.ID = IDS.OPERATION as (typeof IDS)[string]

/**
 * The words that may replace the last typed one: nouns, verbs, options, and recent ids that the signed-in person sees.
 * Without an answer of the server there are no ids, and no error.
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
  if (last === '--op') return IDS.OPERATION?.(context, undefined) ?? []
  if (takesValue(options, last)) return []
  const places = (command.takes ?? '').split(' ').map((name) => name.replace(/[^A-Z]/g, ''))
  const place = given.filter((word, at) => !word.startsWith('-') && !takesValue(options, given[at - 1] ?? '')).length
  const op = given.includes('--op') ? given[given.indexOf('--op') + 1] : undefined
  return IDS[places[place] ?? '']?.(context, op) ?? []
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
