import type { Rehearsal } from '../../shared/contracts/operations/plans.ts'
import { paint, stateColour } from '../../shared/data/print.ts'
import { type Command, type Context, needed, text, type Values, whole } from '../command.ts'
import { EXIT, type ExitCode, failure, usageError } from '../errors.ts'

/** The planner and the checks are as large as the rest of the client, so only these commands load them. */
export const load = async () => {
  try {
    return await import('../../platform/packs/main.ts')
  } catch (error) {
    if (!/packs\.cjs|dynamic import/i.test(String(error))) throw error
    const fault = 'This executable does not have the tools for authors.'
    throw failure(EXIT.error, fault, 'Use the package: npm install --global signalbox-<version>.tgz')
  }
}

/** Opens a folder if its checks pass; otherwise prints the faults. */
const opened = async (context: Context, dir: string) => {
  const tools = await load()
  const folder = tools.openFolder(dir)
  for (const fault of folder.faults) context.out.print(fault)
  return { tools, folder: folder.faults.length === 0 ? folder : undefined }
}

/** Creates files below a new folder. Throws a CliError if they cannot be written there. */
const begun = (dir: string, act: () => string[]): string[] => {
  try {
    return act()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === undefined) throw error
    const fault = `${dir} cannot be created: ${(error as Error).message}.`
    throw failure(EXIT.error, fault, 'Choose a folder that you may write.')
  }
}

/** Packs of procedures, for their authors. No command needs a server. */
export const packCommands: Command[] = [
  {
    name: 'pack init',
    takes: 'DIR',
    about: 'Begins a pack in a new folder: procedures, a test, a source that runs. The folder names the pack.',
    examples: ['pack init network --kind opentofu', 'pack init ./packs/restart-web --kind ssh'],
    options: { kind: { type: 'string', about: 'opentofu, kubernetes, ansible, ssh or http' } },
    run: async ({ out }, [dir = ''], values) => {
      const tools = await load()
      const kind = needed(values, 'kind')
      const kinds = tools.kindsOfPacks()
      if (!kinds.includes(kind)) throw usageError(`--kind takes one of ${kinds.join(', ')}, not ${kind}.`)
      const files = begun(dir, () => {
        const refusal = tools.refuseFolder(dir)
        if (refusal !== undefined) throw usageError(refusal)
        return tools.initPack(dir, kind)
      })
      for (const file of files) out.print(`${dir.replace(/\/$/, '')}/${file}`)
      out.note(
        `Next: signalbox pack check ${dir}, then signalbox pack test ${dir}. ${dir}/README.md describes the next steps.`,
      )
    },
  },
  {
    name: 'pack check',
    takes: 'DIR',
    about: 'Checks all files of a pack as the server does. Each fault has its place, its rule and a remedy.',
    examples: ['pack check network'],
    run: async (context, [dir = '']): Promise<ExitCode> => {
      const { folder } = await opened(context, dir)
      if (!folder) return EXIT.error
      const packs = folder.packs.map(
        ({ pack, version, procedures: { length } }) =>
          `${pack}@${version}: ${length} procedure${length === 1 ? '' : 's'}`,
      )
      for (const warning of folder.warnings) context.out.print(warning)
      context.out.note(`${packs.join(', ')}. ${folder.warnings.length === 0 ? 'Everything is fine.' : 'No fault.'}`)
      return EXIT.done
    },
  },
  {
    name: 'pack test',
    takes: 'DIR',
    about: "Plans the inputs of tests/*.yaml with the server's planner and compares the plans with their expectations.",
    examples: ['pack test network', 'pack test network --run --agent agent.yaml --test "asks once"'],
    options: {
      run: { type: 'boolean', about: 'then run each plan on this machine by the agent, without a server' },
      agent: { type: 'string', value: 'FILE', about: "with --run: the agent's file (DIR/agent/agent.yaml)" },
      test: { type: 'string', value: 'NAME', about: 'with --run: only this test' },
    },
    run: async (context, [dir = ''], values): Promise<ExitCode> => {
      const { tools, folder } = await opened(context, dir)
      if (!folder) return EXIT.error
      const results = tools.runTests(folder)
      if (results.length === 0) throw failure(EXIT.error, `${dir} has no tests.`, `Write ${dir}/tests/first.yaml.`)
      for (const { name, faults } of results) {
        context.out.print(`${faults.length === 0 ? paint('ok    ', 'green') : paint('failed', 'red')} ${name}`)
        for (const fault of faults) context.out.print(`       ${fault}`)
      }
      const failed = results.filter(({ faults }) => faults.length > 0).length
      context.out.note(`${results.length - failed} passed, ${failed} failed.`)
      if (failed > 0) return EXIT.failed
      return values.run === true ? runIt(context, tools, folder, values) : EXIT.done
    },
  },
  {
    name: 'pack rehearse',
    takes: 'DIR',
    about:
      'Runs the plans of the tests on a virtual clock and prints when each node runs, where it waits and how it ends.',
    examples: ['pack rehearse network', 'pack rehearse network --test "asks once" --fail apply.net-eu1=refused'],
    options: {
      test: { type: 'string', value: 'NAME', about: 'only this test' },
      seed: { type: 'string', value: 'N', about: 'the seed of the durations (1)' },
      'approval-delay': { type: 'string', value: 'SECONDS', about: 'how long each approval takes (0)' },
      fail: { type: 'string', value: 'NODE=CLASS', about: 'a node whose first attempt fails' },
    },
    run: async (context, [dir = ''], values): Promise<ExitCode> => {
      const { tools, folder } = await opened(context, dir)
      if (!folder) return EXIT.error
      const [, node_id, name] = /^(.+)=([a-z_]+)$/.exec(text(values, 'fail') ?? '') ?? []
      if (values.fail !== undefined && !name)
        throw usageError('--fail takes NODE=CLASS, such as apply.net-eu1=refused.')
      const assumed = {
        seed: whole(text(values, 'seed') ?? '1', 'seed'),
        approval_delay_s: whole(text(values, 'approval-delay') ?? '0', 'approval-delay'),
        failures: node_id && name ? [{ node_id, attempt: 1, class: name }] : [],
      }
      const rehearsed = tools.rehearseTests(folder, assumed, text(values, 'test'))
      if (rehearsed.length === 0) throw failure(EXIT.error, 'No test of that name has a plan.', `See ${dir}/tests.`)
      const faults = rehearsed.filter((one) => 'fault' in one)
      context.out.list(
        rehearsed.flatMap((one) => ('rehearsal' in one ? rowsOf(one.name, one.rehearsal) : [])),
        'node_id',
        [
          ['test', ({ test }) => test],
          ['node', ({ node_id: id }) => id],
          ['from s', ({ from_s }) => from_s],
          ['to s', ({ to_s }) => to_s],
          ['ends', ({ ends }) => ends],
        ],
      )
      for (const { name: test, fault } of faults) context.out.print(`${test}: ${fault}`)
      return faults.length === 0 ? EXIT.done : EXIT.failed
    },
  },
  {
    name: 'pack schema',
    takes: '[NAME]',
    about: 'Prints the JSON Schema of a file for an editor; without a name it lists the names.',
    examples: ['pack schema', 'pack schema pack > pack.schema.json'],
    run: async ({ out }, [name]) => {
      const { FORMS, schemaText } = await load()
      const known = Object.keys(FORMS)
      if (name === undefined) return known.forEach((one) => void out.print(one))
      const form = known.find((one) => one === name) as keyof typeof FORMS | undefined
      if (!form) throw usageError(`There is no schema "${name}".`, `The schemas are ${known.join(', ')}.`)
      out.print(schemaText(form))
    },
  },
]

/** Rehearses the plans of the tests here, and says how each node ended. */
const runIt = async (
  { out }: Context,
  tools: Awaited<ReturnType<typeof load>>,
  folder: Parameters<typeof tools.runSandbox>[0],
  values: Values,
): Promise<ExitCode> => {
  const file = text(values, 'agent') ?? `${folder.dir}/agent/agent.yaml`
  const ran = await tools.runSandbox(folder, file, text(values, 'test'), ({ node_id, ends, says, log = [] }) => {
    out.print(`${paint(ends.padEnd(9), stateColour(ends))} ${node_id}${says ? `: ${says}` : ''}`)
    for (const line of log) out.print(`          ${line}`)
  })
  if (ran.length === 0) throw failure(EXIT.error, 'No test of that name has a plan.', `See ${folder.dir}/tests.`)
  return ran.some(({ ends }) => ends === 'failed') ? EXIT.failed : EXIT.done
}

/** The course of one rehearsal: each run of a node and each gate, then the end. */
const rowsOf = (test: string, { lanes, gates, ends, duration_s }: Rehearsal) => [
  ...[
    ...lanes.map(({ node_id, from_s, to_s, failure }) => ({
      test,
      node_id,
      from_s,
      to_s,
      ends: failure ?? 'succeeded',
    })),
    ...gates.map(({ gate_id, at, decided_at, status: ends }) => {
      return { test, node_id: `gate ${gate_id}`, from_s: at ?? 0, to_s: decided_at ?? 0, ends: ends as string }
    }),
  ].sort((a, b) => a.from_s - b.from_s),
  { test, node_id: 'all', from_s: 0, to_s: duration_s, ends },
]
