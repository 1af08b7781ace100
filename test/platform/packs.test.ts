import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { parse, parseDocument, stringify } from 'yaml'
import { run } from '../../apps/cli/run.ts'
import { ROOT } from '../../apps/platform/base/paths.ts'
import {
  initPack,
  kindsOfPacks,
  openFolder,
  refuseFolder,
  rehearseTests,
  runTests,
} from '../../apps/platform/packs/main.ts'
import { compileSchema } from '../../apps/shared/data/json-schema.ts'
import { until } from '../support/until.ts'

/** Packs for their authors: how `signalbox pack` creates, checks, tests and rehearses them, without a server. */
const scratch = mkdtempSync(join(tmpdir(), 'signalbox-authors-'))
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

let count = 0
const begin = (kind: string): string => {
  const dir = join(scratch, `my-${kind}-${count++}`)
  initPack(dir, kind)
  return dir
}
const edit = (file: string, change: (text: string) => string) => writeFileSync(file, change(readFileSync(file, 'utf8')))
/** The client in this process: another test covers starting it. */
const signalbox = async (...args: string[]) => {
  const said = { out: '', err: '' }
  const spies = (['out', 'err'] as const).map((name) =>
    vi.spyOn(process[`std${name}`], 'write').mockImplementation((text) => {
      said[name] += text
      return true
    }),
  )
  const code = await run(args).finally(() => spies.forEach((spy) => void spy.mockRestore()))
  return { code, ...said }
}

describe('a new pack', () => {
  it.each(['opentofu', 'kubernetes', 'ansible', 'ssh', 'http'])('of kind %s passes its checks and its test', (kind) => {
    const folder = openFolder(begin(kind))
    expect(folder.faults).toEqual([])
    const results = runTests(folder)
    expect(results.length).toBeGreaterThan(0)
    expect(results.flatMap(({ faults }) => faults)).toEqual([])
    const [first] = rehearseTests(folder, { seed: 1, approval_delay_s: 60, failures: [] })
    expect(first).toMatchObject({ rehearsal: { ends: 'succeeded', gates: [{ status: 'approved' }] } })
  })

  it('names its own folder, whose path may contain the name of the template', () => {
    const dir = join(scratch, 'my-pack and my_pack', 'web-shop')
    initPack(dir, 'opentofu')
    const agent = readFileSync(join(dir, 'agent/agent.yaml'), 'utf8')
    expect(agent).toContain(`${dir}/`)
    expect(agent.replaceAll(dir, '')).not.toMatch(/my[-_]pack/)
  })

  it('needs an existing kind, and a new folder whose name is a valid pack name', async () => {
    expect(kindsOfPacks()).toEqual(['ansible', 'http', 'kubernetes', 'opentofu', 'ssh'])
    expect(refuseFolder(begin('http'))).toContain('is not empty')
    const file = join(scratch, 'a-file')
    writeFileSync(file, '')
    expect(refuseFolder(file)).toContain('is a file: choose a new folder')
    const below = await signalbox('pack', 'init', join(file, 'network'), '--kind', 'ssh')
    expect(below.code).toBe(1)
    expect(below.err).toMatch(/network cannot be created: ENOTDIR.*Choose a folder that you may write\.\n$/)
    // A file system that answers ENOENT for a new folder.
    const nowhere = await signalbox('pack', 'init', '/proc/network', '--kind', 'ssh')
    expect([nowhere.code, nowhere.err]).toEqual([1, expect.stringContaining('network cannot be created: ENOENT')])
    expect(refuseFolder(join(scratch, 'My Pack'))).toContain('"My Pack" is not a valid name')
  })

  it('brings a service that its steps can call', async () => {
    const port = '18088'
    const env = { ...process.env, PORT: port }
    const service = spawn(process.execPath, [join(begin('http'), 'source/service.cjs')], { env, stdio: 'ignore' })
    try {
      const call = (init?: RequestInit) => fetch(`http://127.0.0.1:${port}/release`, init).then((got) => got.json())
      const body = JSON.stringify({ release: '1.1' })
      await until(() => call().then(() => true))
      expect(await call({ method: 'PUT', body })).toEqual({ release: '1.1', previous: '1.0', healthy: true })
    } finally {
      service.kill()
    }
  })
})

describe('the pack for OpenTofu', () => {
  it('applies the optional members of a workspace, too', async () => {
    const dir = begin('opentofu')
    edit(join(dir, 'tests/first.yaml'), (text) =>
      text
        .replace('variables: { size: 10 } }', 'variables: { size: 10 }, var_files: [a.tfvars], credentials: eu1 }')
        .replace(/plan(\.\S+): \{ inputs: .*/, 'apply$1: { inputs: { var_files: [a.tfvars], credentials: eu1 } }'),
    )
    expect(await signalbox('pack', 'test', dir)).toMatchObject({ code: 0, err: '2 passed, 0 failed.\n' })
  })
})

describe('the checks', () => {
  it('name every fault by file, line, column, rule and remedy', async () => {
    const dir = begin('opentofu')
    edit(join(dir, 'pack.yaml'), (text) =>
      text
        .replace('resource_type: delivery.workspace', 'resource_type: delivery.workspaces')
        .replace('needs: [plan]', 'needs: [plans]')
        .replace("target.desired_state.source == 'my", "target.desired_state.source = 'my"),
    )
    edit(join(dir, 'agent/agent.yaml'), (text) => text.replace('uid: 1500', 'uid: -1'))
    const path = join(dir, 'agent/agent.yaml')
    const sound = readFileSync(path, 'utf8').replace('uid: -1', 'uid: 1500')
    // As the agent itself would refuse them when it starts.
    writeFileSync(
      join(dir, 'agent/both.yaml'),
      sound.replace(/state: \S+ \}/, 'state: /srv/state, backend: { key: a } }'),
    )
    writeFileSync(join(dir, 'agent/cel.yaml'), `${sound}credentials: { cloud: { jobs: [ssh], when: with. } }\n`)
    writeFileSync(join(dir, 'agent/old.yaml'), sound.replace('signalbox/agent@1', 'signalbox/agent@2'))
    const { code, out } = await signalbox('pack', 'check', dir)
    expect(code).toBe(1)
    const lines = out.trim().split('\n')
    const found = lines.map((line) => /([a-z]+\.yaml:\d+:\d+) at \S+: .+ \(([a-z]+)\)\. [A-Z]/.exec(line)?.slice(1))
    expect(found.toSorted()).toEqual([
      ['agent.yaml:5:6', 'format'],
      [expect.stringMatching(/^both.yaml:9:/), 'format'],
      ['cel.yaml:10:44', 'format'],
      ['old.yaml:2:9', 'format'],
      ['pack.yaml:13:22', 'type'],
      ['pack.yaml:16:13', 'expression'],
      ['pack.yaml:43:17', 'order'],
      ['pack.yaml:44:79', 'reference'],
    ])
  })

  it('warn of a job that the agent of the folder does not know, since another agent may', async () => {
    const dir = begin('opentofu')
    edit(join(dir, 'pack.yaml'), (text) => text.replace('opentofu.preview', 'opentofu.prevew'))
    const { code, out, err } = await signalbox('pack', 'check', dir)
    expect(out).toContain('step plan: "signalbox agent" knows no job "opentofu.prevew".')
    expect(err).toContain('1 procedure. No fault.')
    expect(code).toBe(0)
    // The agents of another pool are not those of this folder.
    edit(join(dir, 'agent/agent.yaml'), (text) => text.replace('pools: [infra]', 'pools: [other]'))
    expect(openFolder(dir).warnings).toEqual([])
  })

  it('warn of the name of an output that a step of an intent could not have; such a pack loads', async () => {
    const dir = begin('opentofu')
    edit(join(dir, 'pack.yaml'), (text) => text.replaceAll(/\bpreview: \/preview/g, 'preview: /preview, vmId: /id'))
    const { code, out } = await signalbox('pack', 'check', dir)
    expect(out).toMatch(/step plan: rename "vmId"\. Names have only a-z, 0-9 and _\./)
    expect(code).toBe(0)
  })

  it('say what a folder without a pack lacks, and refuse YAML that is none', async () => {
    const empty = join(scratch, 'empty')
    mkdirSync(empty)
    expect(await signalbox('pack', 'check', empty)).toMatchObject({
      code: 1,
      out: expect.stringMatching(/empty: there is no pack in this folder.*\(file\)/),
    })
    const dir = begin('ssh')
    writeFileSync(join(dir, 'pack.yaml'), 'format: [\n  { a: b }: c\n')
    expect(openFolder(dir).faults.join('\n')).toMatch(/pack\.yaml:\d+:\d+: .* \(yaml\)/)
    expect(openFolder(join(dir, 'pack.yaml')).faults.join('\n')).toMatch(/pack\.yaml: the folder cannot be read/)
  })
})

describe('the tests of a pack', () => {
  type Test = { given: { resources: { desired_state: object }[] }; expect: Record<string, unknown> }
  const failing = (kind: string, change: (test: Test) => void) => {
    const dir = begin(kind)
    const file = join(dir, 'tests/first.yaml')
    const document = parse(readFileSync(file, 'utf8'), { merge: true })
    change(document.tests[0])
    writeFileSync(file, stringify(document, { aliasDuplicateObjects: false }))
    const folder = openFolder(dir)
    expect(folder.faults).toEqual([])
    return runTests(folder)[0]?.faults.join('\n')
  }
  const cases: [string, string, (expected: Record<string, unknown>) => void, RegExp][] = [
    [
      'another node',
      'http',
      (e) => (e.nodes = ['release.x']),
      /first\.yaml:\d+:\d+ at \/tests\/0\/expect\/nodes: the plan lacks release\.x/,
    ],
    ['a node too few', 'http', (e) => (e.nodes as string[]).pop(), /also has verify/],
    ['another gate', 'http', (e) => (e.gates = []), /also has entry before release/],
    [
      'other inputs',
      'http',
      (e) =>
        (e.with = Object.fromEntries(Object.keys(e.with as object).map((id) => [id, { request: { method: 'GET' } }]))),
      /\/request\/method: is "PUT" in the plan/,
    ],
    ['a refusal that does not come', 'http', (e) => (e.refused = 'parameters_invalid'), /made a plan of 2 nodes/],
  ]
  it.each(cases)('fail, at the place of the expectation, for %s', (_, kind, change, says) => {
    expect(failing(kind, (test) => change(test.expect))).toMatch(says)
  })

  it('fail for a resource that the catalog would refuse, and for an unknown one', () => {
    expect(
      failing('http', ({ given }) => {
        for (const one of given.resources) one.desired_state = { ...one.desired_state, color: 'red' }
      }),
    ).toMatch(/desired_state\/color: is not a known member \(test\)/)
    expect(failing('http', ({ given }) => void given.resources.pop())).toMatch(/refused it as target_not_found/)
  })

  it('exit 0 when they pass and 5 when one fails, and rehearse a given failure', async () => {
    const dir = begin('ssh')
    expect(await signalbox('pack', 'test', dir)).toMatchObject({ code: 0, err: '2 passed, 0 failed.\n' })
    const told = await signalbox('pack', 'rehearse', dir, '--fail', 'restart.web-01=refused')
    expect(told).toMatchObject({ code: 0, out: expect.stringMatching(/restart\.web-01 +0 +\d+ +refused/) })
    expect(await signalbox('pack', 'rehearse', dir, '--fail', 'nobody=refused')).toMatchObject({
      code: 5,
      out: expect.stringContaining('There is no node "nobody".'),
    })
    edit(join(dir, 'pack.yaml'), (text) => text.replace('program: restart', 'program: reload'))
    expect(await signalbox('pack', 'test', dir)).toMatchObject({
      code: 5,
      out: expect.stringContaining('is "reload" in the plan'),
    })
  })
})

it('the first line of every shipped file names its schema', async () => {
  const folders = [
    'apps/operations/packs',
    'apps/operations/policies/gates',
    'apps/catalog/packs',
    'activities/executors',
    'apps/platform/deploy',
  ]
  const files = folders.flatMap((folder) =>
    readdirSync(join(ROOT, folder))
      .filter((name) => name.endsWith('.yaml'))
      .map((name) => join(ROOT, folder, name)),
  )
  expect(files.length).toBeGreaterThan(14)
  for (const file of files) {
    const text = readFileSync(file, 'utf8')
    const [, named = ''] = /^# yaml-language-server: \$schema=(\S+)\n/.exec(text) ?? []
    const schema = JSON.parse(readFileSync(resolve(dirname(file), named), 'utf8')) as object
    expect(compileSchema(schema)(parseDocument(text, { merge: true }).toJS()), file).toEqual([])
  }
  const { code, out } = await signalbox('pack', 'schema', 'pack')
  expect(code).toBe(0)
  expect(out).toBe(readFileSync(join(ROOT, 'apps/shared/contracts/schemas/pack.json'), 'utf8'))
  expect(await signalbox('pack', 'schema', 'other')).toMatchObject({
    code: 2,
    err: expect.stringContaining('The schemas are pack,'),
  })
})
