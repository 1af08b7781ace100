import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../../base/paths.ts'

/**
 * Checks a card: the README.md of a process, of the console, or of `workflows`, `activities` and `db`. All cards have
 * the same headings in the same order, and their tables, events, calls and scripts exist in the code. documents.ts
 * checks their paths.
 */
const PARTS = ['Owns', 'Called by', 'Calls', 'Tables', 'Events', 'Invariants', 'Where to look', 'Tests', 'How to add']
const MOST_LINES = 40
const MOST_INVARIANTS = 7
const OTHERS = ['apps/console', 'workflows', 'activities', 'db']

/** The code that a card is compared with. `calls` is `undefined` if no configuration names the called apps. */
export type Code = {
  text: string
  tables: string
  apps: readonly string[]
  scripts: readonly string[]
  calls?: ReadonlySet<string>
}

const quoted = (text: string): string[] => [...text.matchAll(/`([^`]+)`/g)].map(({ 1: name = '' }) => name)

/** The parts of a card by heading: `**Owns** …` or `## Invariants`. */
const partsOf = (card: string): Map<string, string> => {
  const pieces = card.split(/^## (.+)$|\*\*([A-Z][a-z ]+)\*\*/m)
  const parts = new Map<string, string>()
  for (let at = 1; at < pieces.length; at += 3) parts.set(pieces[at] ?? pieces[at + 1] ?? '', pieces[at + 2] ?? '')
  return parts
}

/** The problems of one card, one line each. */
export const cardProblems = (card: string, { text, tables, apps, scripts, calls }: Code): string[] => {
  const parts = partsOf(card)
  const part = (name: string): string => parts.get(name) ?? ''
  const lines = card.trimEnd().split('\n').length
  const invariants = part('Invariants')
    .split(/^(?=\d+\. )/m)
    .slice(1)
  const called = part('Calls').replace(/\([^)]*\)|\.\s[\s\S]*/g, '')
  const named = new Set(apps.filter((app) => new RegExp(`\\b${app}\\b`).test(called)))
  return [
    ...(lines > MOST_LINES ? [`${lines} lines, at most ${MOST_LINES} are allowed`] : []),
    ...([...parts.keys()].join() === PARTS.join() ? [] : [`has the headings ${[...parts.keys()].join(', ')}`]),
    ...(invariants.length > MOST_INVARIANTS
      ? [`${invariants.length} invariants, at most ${MOST_INVARIANTS} are allowed`]
      : []),
    ...invariants.filter((one) => !/`test\/[^`]+`/.test(one)).map((one) => `names no test: ${one.trim()}`),
    ...quoted(part('Tables'))
      .filter((name) => /^[a-z_]+$/.test(name) && !tables.includes(`'${name}'`))
      .map((name) => `there is no table ${name}`),
    ...quoted(part('Events'))
      .map((name) => name.replace(/\*$/, ''))
      .filter((name) => /^[a-z_]+[.:]/.test(name) && !text.includes(name))
      .map((name) => `there is no event ${name}`),
    ...(part('Events').match(/\b(?!NATS\b)[A-Z]{4,}\b/g) ?? [])
      .filter((stream) => !new RegExp(`\\b${stream}: '`).test(text))
      .map((stream) => `there is no stream ${stream}`),
    ...[...(calls ?? [])].filter((app) => !named.has(app)).map((app) => `calls ${app}: add it`),
    ...[...named]
      .filter((app) => calls && !calls.has(app))
      .map((app) => `names a call to ${app}, but has no address of it`),
    ...[...card.matchAll(/npm run\s+([\w:-]+)/g)]
      .filter(({ 1: script = '' }) => !scripts.includes(script))
      .map(({ 0: script }) => `there is no script ${script}`),
  ]
}

/** The apps whose addresses an app reads from its environment. */
const callsOf = (app: string, apps: readonly string[]): ReadonlySet<string> => {
  const config = readFileSync(join(ROOT, 'apps', app, 'config.ts'), 'utf8')
  const addresses = [...config.matchAll(/([A-Z]+)_+URL: settings\.url/g)].map(({ 1: name = '' }) => name.toLowerCase())
  return new Set(addresses.filter((name) => apps.includes(name)))
}

const sourcesOf = (folder: string): string =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.ts$/.test(file))
    .map((file) => readFileSync(join(ROOT, folder, file), 'utf8'))
    .join('\n')

export const staleCards = (): string[] => {
  const apps = readdirSync(join(ROOT, 'apps')).filter(
    (app) => app !== 'shared' && existsSync(join(ROOT, 'apps', app, 'config.ts')),
  )
  const tables = sourcesOf('db')
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: object }
  const code = { text: sourcesOf('apps') + tables, tables, apps, scripts: Object.keys(scripts) }
  return [...apps.map((app) => `apps/${app}`), ...OTHERS].flatMap((folder) => {
    const file = `${folder}/README.md`
    if (!existsSync(join(ROOT, file))) return [`${file}: is missing`]
    const calls = folder.startsWith('apps/') && folder !== 'apps/console' ? callsOf(folder.slice(5), apps) : undefined
    return cardProblems(readFileSync(join(ROOT, file), 'utf8'), { ...code, ...(calls && { calls }) }).map(
      (problem) => `${file}: ${problem}`,
    )
  })
}
