import { readdirSync, statSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import type { TypeModel } from '../../catalog/packs/format.ts'
import { checkPacks } from '../../catalog/packs/library.ts'
import { JOBS } from '../../cli/agent/attempt.ts'
import { AgentFile, settle } from '../../cli/agent/tools/file.ts'
import type { Library, Pack } from '../../operations/graph/types.ts'
import { loadLibrary } from '../../operations/packs/library.ts'
import { MEMBER } from '../../operations/packs/schema.ts'
import { lineOf, PackError, type PackFault, readShape, type Source } from '../../operations/packs/source.ts'
import { compileSchema } from '../../shared/data/json-schema.ts'
import { pointerOf } from '../../shared/data/pointer.ts'
import { PackTestFile } from './format.ts'
import { SHIPPED } from './shipped.ts'

const shape = { test: compileSchema(PackTestFile), agent: compileSchema(AgentFile) }

/** The contents of a pack author's folder: packs, `gates`, `types`, `tests` and `agent`. */
export type PackFolder = {
  dir: string
  /** Only the packs of this folder. */
  packs: Pack[]
  /** Includes the shipped packs and policies; its tests are planned with this. */
  library: Library
  model: TypeModel
  tests: Source<PackTestFile>[]
  /** Lines about faults that do not keep a pack from loading: the site may have more than this folder shows. */
  warnings: string[]
}

const EMPTY: Library = { packs: [], policies: new Map(), windows: [], freezes: [] }

/** Reads and checks the folder of a pack, without a server. `faults` are lines: `file:line:column`, rule and remedy. */
export const openFolder = (given: string): PackFolder & { faults: string[] } => {
  const dir = relative('', resolve(given)) || '.'
  const types = isFolder(join(dir, 'types')) ? [SHIPPED.types, join(dir, 'types')] : [SHIPPED.types]
  const { model, faults: typeFaults } = checkPacks(types)
  const found: PackFault[] = []
  let library = EMPTY
  try {
    library = loadLibrary({ packs_dirs: [dir], shipped: SHIPPED.operations })
  } catch (error) {
    if (!(error instanceof PackError)) throw error
    found.push(...error.found)
  }
  const own = new Set(
    yamlOf(dir).flatMap((file) => readShape<{ pack?: unknown }>(file, () => [], [])?.value?.pack ?? []),
  )
  const packs = library.packs.filter(({ pack }) => own.has(pack))
  if (found.length === 0 && packs.length === 0)
    found.push({
      place: dir,
      pointer: '',
      rule: 'file',
      reason: 'there is no pack in this folder: a file *.yaml with format signalbox/pack@1',
    })
  refuseTypes(dir, model, found)
  const agents = yamlOf(join(dir, 'agent')).flatMap(
    (file) => readShape<Parameters<typeof settle>[0]>(file, shape.agent, found) ?? [],
  )
  for (const { value, report } of agents) {
    try {
      settle(value)
    } catch (error) {
      const [, pointer = '', reason = ''] = /^(\/\S+): (.*)$/s.exec((error as Error).message) ?? []
      report(pointer, 'format', reason)
    }
  }
  const tests = yamlOf(join(dir, 'tests')).flatMap((file) => readShape<PackTestFile>(file, shape.test, found) ?? [])
  const warnings = [...unknownJobs(packs, new Set(agents.flatMap(({ value }) => value.pools))), ...oddNames(packs)]
  return { dir, packs, library, model, tests, warnings, faults: [...new Set([...typeFaults, ...found.map(lineOf)])] }
}

/** Jobs that the agent of this folder does not know. Another agent of its pools may, so they are no faults. */
const unknownJobs = (packs: Pack[], pools: ReadonlySet<string>): string[] =>
  packs.flatMap(({ pack, procedures }) =>
    procedures.flatMap(({ key, steps }) =>
      steps
        .filter(({ executor, pool = '', with: { job } }) => {
          return executor === 'external' && pools.has(pool) && typeof job === 'string' && !JOBS.includes(job)
        })
        .map(({ id, with: { job } }) => {
          const remedy = 'Correct it, unless another agent of the pool knows it.'
          return `${pack}.${key}, step ${id}: "signalbox agent" knows no job "${job}". ${remedy}`
        }),
    ),
  )

/** Names that graph intents could not have, and that packs of earlier versions may. */
const oddNames = (packs: Pack[]): string[] =>
  packs.flatMap(({ pack, procedures }) =>
    procedures.flatMap(({ key, steps }) =>
      steps.flatMap(({ id, outputs = {}, secrets = {} }) =>
        [...Object.keys(outputs), ...Object.keys(secrets)]
          .filter((name) => !new RegExp(MEMBER).test(name))
          .map((name) => `${pack}.${key}, step ${id}: rename "${name}". Names have only a-z, 0-9 and _.`),
      ),
    ),
  )

/** A procedure for a type that no type pack defines would never match. */
const refuseTypes = (dir: string, { types }: TypeModel, found: PackFault[]): void => {
  const known = new Map(types.map((type) => [type.type_key, type]))
  for (const file of yamlOf(dir)) {
    const source = readShape<Pick<Pack, 'procedures'>>(file, () => [], found)
    for (const [i, procedure] of Object.entries(source?.value?.procedures ?? [])) {
      const match = procedure?.match
      const at = (member: string) => pointerOf('procedures', Number(i), 'match', member)
      const type = known.get(match?.resource_type ?? '')
      if (typeof match?.resource_type === 'string' && !type)
        source?.report(at('resource_type'), 'type', `there is no type "${match.resource_type}"`)
      if (
        type &&
        typeof match?.action === 'string' &&
        !type.actions.some(({ action_key }) => action_key === match.action)
      )
        source?.report(at('action'), 'type', `the type "${type.type_key}" has no action "${match.action}"`)
    }
  }
}

const isFolder = (at: string): boolean => statSync(at, { throwIfNoEntry: false })?.isDirectory() === true

const yamlOf = (at: string): string[] =>
  isFolder(at)
    ? readdirSync(at)
        .filter((name) => /\.ya?ml$/.test(name))
        .sort()
        .map((name) => join(at, name))
    : []
