import { isObject } from '../../shared/data/pointer.ts'
import { type Command, text } from '../command.ts'
import { missing, usageError } from '../errors.ts'
import { readPrivate, settingsFile, writePrivate } from './private-file.ts'

/** Platforms by name instead of address. The credentials file keeps sign-ins by address. */
export type Contexts = { current: string | null; contexts: Record<string, { url: string }> }

const NAME = /^[a-z0-9][a-z0-9._-]{0,62}$/i
const DEFAULT_URL = 'http://localhost:8080'

const fileOf = (env: NodeJS.ProcessEnv): string => settingsFile(env, 'contexts.json')

const fits = ({ contexts, current }: Contexts): boolean =>
  (current === null || typeof current === 'string') &&
  isObject(contexts) &&
  Object.values(contexts).every((context) => isObject(context) && typeof context.url === 'string')

/** The contexts of this person. Throws a CliError if the file is damaged. */
const readContexts = (env: NodeJS.ProcessEnv): Contexts =>
  readPrivate<Contexts>(fileOf(env), 'signalbox context set NAME --url URL', fits) ?? { current: null, contexts: {} }

const save = (env: NodeJS.ProcessEnv, contexts: Contexts): void => writePrivate(fileOf(env), contexts)

const known = ({ contexts }: Contexts, name: string): { url: string } => {
  const found = Object.hasOwn(contexts, name) ? contexts[name] : undefined
  if (found) return found
  const names = Object.keys(contexts)
  throw missing(
    names.length === 0
      ? `There is no context "${name}", because none has been added. Add one: signalbox context set ${name} --url URL`
      : `There is no context "${name}". Known: ${names.join(', ')}.`,
  )
}

/**
 * The address to use: --url, --context, SIGNALBOX_URL, SIGNALBOX_CONTEXT, the current context, or this machine. There a
 * checkout's entry point names the platform that it runs: another program may own the default port.
 */
export const urlOf = (
  { url, context }: { url: string | undefined; context: string | undefined },
  env: NodeJS.ProcessEnv,
): string => {
  const named = context ?? (url || env.SIGNALBOX_URL ? undefined : env.SIGNALBOX_CONTEXT)
  if (url) return trimmed(url)
  if (named) return known(readContexts(env), named).url
  if (env.SIGNALBOX_URL) return trimmed(env.SIGNALBOX_URL)
  const all = readContexts(env)
  return all.current === null ? env.SIGNALBOX_LOCAL_URL || DEFAULT_URL : known(all, all.current).url
}

const trimmed = (url: string): string => url.replace(/\/+$/, '')

const checkedUrl = (given: string): string => {
  const url = URL.canParse(given) ? new URL(given) : undefined
  if (url && ['http:', 'https:'].includes(url.protocol)) return trimmed(given)
  const not = given === '' ? '' : `, not ${given}`
  throw usageError(`--url takes an address such as https://signalbox.example.com${not}.`)
}

export const contextCommands: Command[] = [
  {
    name: 'context list',
    about: 'Lists your contexts; the current one is marked.',
    examples: ['context list'],
    run: async ({ env, out }) => {
      const { current, contexts } = readContexts(env)
      out.list(
        Object.entries(contexts).map(([name, { url }]) => ({ name, url, current: name === current })),
        'name',
        [
          ['', (row) => (row.current ? '*' : '')],
          ['name', ({ name }) => name],
          ['url', ({ url }) => url],
        ],
      )
    },
  },
  {
    name: 'context set',
    takes: 'NAME',
    about: 'Adds a context or changes its address. The first one becomes the current one.',
    examples: ['context set prod --url https://signalbox.example.com'],
    run: async ({ env, out }, [name = ''], values) => {
      if (!NAME.test(name))
        throw usageError('A context name consists of letters, digits, dots, dashes and underscores.')
      const url = checkedUrl(text(values, 'url') ?? '')
      const { current, contexts } = readContexts(env)
      save(env, { current: current ?? name, contexts: { ...contexts, [name]: { url } } })
      out.note(`The context ${name} points to ${url}.`)
    },
  },
  {
    name: 'context use',
    takes: 'NAME',
    about: 'Makes a context the current one.',
    examples: ['context use prod'],
    run: async ({ env, out }, [name = '']) => {
      const all = readContexts(env)
      const { url } = known(all, name)
      save(env, { ...all, current: name })
      out.note(`Commands now go to ${url}.`)
    },
  },
  {
    name: 'context remove',
    takes: 'NAME',
    about: 'Removes a context. Its sign-in stays until signalbox logout --url URL.',
    examples: ['context remove prod'],
    run: async ({ env, out }, [name = '']) => {
      const all = readContexts(env)
      known(all, name)
      const { [name]: _, ...contexts } = all.contexts
      save(env, { current: all.current === name ? null : all.current, contexts })
      out.note(`The context ${name} was removed.`)
    },
  },
]
