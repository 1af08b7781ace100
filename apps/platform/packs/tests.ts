import { lineOf, type PackFault } from '../../operations/packs/source.ts'
import { compileSchema } from '../../shared/data/json-schema.ts'
import { equalJson, isObject, pointerOf } from '../../shared/data/pointer.ts'
import type { PackFolder } from './folder.ts'
import type { PackTest } from './format.ts'
import { type Planned, planTest } from './plan.ts'

export type TestResult = { file: string; name: string; faults: string[] }

/** Runs the tests of a folder through the planner. `faults` are lines that name the place of the expectation. */
export const runTests = (folder: PackFolder): TestResult[] =>
  folder.tests.flatMap((source) =>
    source.value.tests.map((test, i) => {
      const found: PackFault[] = []
      judge(folder, test, pointerOf('tests', i), (pointer, reason) => {
        found.push({ place: source.placeOf(pointer), pointer, rule: 'test', reason })
        return undefined
      })
      return { file: source.file, name: test.name, faults: found.map(lineOf) }
    }),
  )

type Say = (pointer: string, reason: string) => undefined

const judge = (folder: PackFolder, test: PackTest, at: string, say: Say): undefined => {
  for (const [i, resource] of test.given.resources.entries())
    refuseResource(folder, resource, `${at}/given/resources/${i}`, say)
  const planned = planTest(folder, test)
  const { refused } = test.expect
  if (refused !== undefined) return judgeRefusal(refused, planned, `${at}/expect/refused`, say)
  if ('refused' in planned)
    return say(`${at}/expect`, `the planner refused it as ${planned.refused.code}: ${planned.refused.message}`)
  const { nodes, gates } = planned.made.document
  const expected = test.expect
  if (expected.nodes)
    differ(
      expected.nodes,
      nodes.map(({ node_id }) => node_id),
      `${at}/expect/nodes`,
      say,
    )
  if (expected.gates)
    differ(
      expected.gates.map(({ policy, guards }) => `${policy} before ${guards.toSorted().join(', ')}`),
      gates.map(({ policy, guards }) => `${policy.key} before ${guards.toSorted().join(', ')}`),
      `${at}/expect/gates`,
      say,
    )
  for (const [node_id, values] of Object.entries(expected.with ?? {})) {
    const node = nodes.find((candidate) => candidate.node_id === node_id)
    const pointer = `${at}/expect/with${pointerOf(node_id)}`
    if (!node) say(pointer, `there is no node "${node_id}"`)
    else
      for (const { path, is } of partsThatDiffer(values, node.with))
        say(`${pointer}${path}`, `is ${JSON.stringify(is) ?? 'missing'} in the plan`)
  }
}

/** A resource that the catalog would refuse proves little. */
const refuseResource = (
  { model }: PackFolder,
  resource: PackTest['given']['resources'][number],
  at: string,
  say: Say,
): undefined => {
  const type = model.types.find(({ type_key }) => type_key === resource.type)
  if (!type) return say(`${at}/type`, `there is no type "${resource.type}"`)
  for (const part of ['desired_state', 'observed_state'] as const) {
    if (part === 'observed_state' && resource[part] === undefined) continue
    for (const { pointer, message } of compileSchema(type[`${part}_schema`])(resource[part] ?? {}))
      say(`${at}/${part}${pointer}`, message)
  }
}

const judgeRefusal = (expected: string, planned: Planned, at: string, say: Say): undefined => {
  if (!('refused' in planned)) return say(at, `the planner made a plan of ${planned.made.counts.nodes} nodes`)
  const { code, message } = planned.refused
  if (code !== expected && !message.includes(expected)) say(at, `the planner refused it as ${code}: ${message}`)
}

const differ = (expected: readonly string[], found: readonly string[], at: string, say: Say): undefined => {
  const missing = expected.filter((one) => !found.includes(one))
  const more = found.filter((one) => !expected.includes(one))
  if (missing.length > 0) say(at, `the plan lacks ${missing.join('; ')}`)
  if (more.length > 0) say(at, `the plan also has ${more.join('; ')}`)
  if (missing.length + more.length === 0 && expected.length !== found.length)
    say(at, `the plan has ${found.length}, not ${expected.length}`)
}

/** Members of `expected` that differ in `found`; members that are not expected may have any value. */
const partsThatDiffer = (expected: unknown, found: unknown, path = ''): { path: string; is: unknown }[] =>
  isObject(expected) && isObject(found)
    ? Object.entries(expected).flatMap(([key, value]) => partsThatDiffer(value, found[key], `${path}${pointerOf(key)}`))
    : equalJson(expected, found)
      ? []
      : [{ path, is: found }]
