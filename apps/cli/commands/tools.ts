import type { IntentRow } from '../../shared/contracts/operations/intents.ts'
import type { OperationSummary } from '../../shared/contracts/operations/operations.ts'
import { paint } from '../../shared/data/print.ts'
import type { Command, Context } from '../command.ts'
import { CliError, EXIT, missing, usageError } from '../errors.ts'
import { openBrowser } from '../session/browser.ts'
import { examine } from '../session/doctor.ts'
import { SHELLS, wordsAfter } from '../terminal/completion.ts'

/** Tools for the client itself. `commands` are all commands, including these. */
export const toolCommands = (commands: () => readonly Command[]): Command[] => [
  {
    name: 'doctor',
    about: 'Checks what can keep this client from its server: one line each, with the remedy.',
    examples: ['doctor', 'doctor --context prod -o json'],
    run: async (context) => {
      const findings = await examine(context)
      context.out.one(
        findings,
        (all) => all.flatMap(({ check, ok }) => (ok ? [] : [check])).join('\n'),
        (all) =>
          all.map(({ check, ok, said, remedy }) =>
            [ok ? paint('ok   ', 'green') : paint('wrong', 'red'), `${check}: ${said}.`, remedy ? `${remedy}.` : '']
              .filter(Boolean)
              .join(' '),
          ),
      )
      return findings.every(({ ok }) => ok) ? EXIT.done : EXIT.error
    },
  },
  {
    name: 'open',
    takes: 'ID',
    about: 'Prints the console page of an operation, plan, intent or resource; at a terminal it opens it.',
    examples: ['open 77b0aa', 'open eu1-web-01'],
    run: async (context, [given = '']) => {
      const page = { url: `${context.api.url}${await pathOf(context, given)}` }
      context.out.one(page, 'url', ({ url }) => [url])
      const { BROWSER } = context.env
      if (process.stdout.isTTY)
        openBrowser(page.url, BROWSER, () => context.out.note('No browser could be started; BROWSER names one.'))
    },
  },
  {
    name: 'completion',
    takes: 'SHELL [WORD…]',
    about:
      'Prints a script that completes commands, options and recent ids: eval "$(signalbox completion bash)". Shells: bash, zsh, fish.',
    examples: ['completion bash >> ~/.bashrc', 'completion fish > ~/.config/fish/completions/signalbox.fish'],
    timeout_ms: 2000,
    repeats: 0,
    run: async (context, [shell = '', ...typed]) => {
      if (shell === 'words') for (const word of await wordsAfter(context, commands(), typed)) context.out.print(word)
      else if (SHELLS[shell]) context.out.print(SHELLS[shell])
      else throw usageError(`completion takes one of ${Object.keys(SHELLS).join(', ')}, not ${shell}.`)
    },
  },
]

/** The page of the object whose id is or ends with this. */
const pathOf = async ({ api }: Context, given: string): Promise<string> => {
  const [operations, intents] = await Promise.all([
    api.list<OperationSummary>('/api/v1/operations', { page_size: '500' }, false),
    api.list<IntentRow>('/api/v1/intents', { page_size: '500' }, false),
  ])
  const found = [
    ...operations
      .filter(({ operation_id }) => operation_id.endsWith(given))
      .map((row) => `/operations/${row.operation_id}`),
    ...intents
      .filter(({ intent_id, latest_plan_id }) => [intent_id, latest_plan_id].some((id) => id?.endsWith(given)))
      .map(({ latest_plan_id }) => (latest_plan_id ? `/plans/${latest_plan_id}` : '/intents')),
  ]
  if (found.length > 1)
    throw usageError(`${found.length} ids end with ${JSON.stringify(given)}.`, 'Lists print whole ids with -o id.')
  if (found[0]) return found[0]
  const id = encodeURIComponent(given)
  for (const [read, page] of [
    [`/api/v1/operations/${id}`, `/operations/${id}`],
    [`/api/v1/plans/${id}`, `/plans/${id}`],
    [`/api/v1/resources/${id}`, `/resources/${id}`],
  ] as const) {
    const there = await api.get(read).then(
      () => true,
      (error: unknown) => {
        if (error instanceof CliError && error.exit !== EXIT.sign_in) return false
        throw error
      },
    )
    if (there) return page
  }
  throw missing(`No operation, plan, intent or resource has the id ${JSON.stringify(given)}, or you may not see it.`)
}
