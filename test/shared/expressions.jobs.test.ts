import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { JOBS } from '../../apps/cli/agent/attempt.ts'
import { ROOT } from '../../apps/platform/base/paths.ts'
import { JOB_INPUTS } from '../../apps/shared/contracts/engine/jobs.ts'
import { faultsInJob } from '../../apps/shared/expressions/job-inputs.ts'

const faults = (job: string, inputs: Record<string, unknown>) =>
  faultsInJob(job, inputs, (value) => typeof value === 'object' && value !== null && '$from' in value).map(
    ({ pointer, message }) => `${pointer} ${message}`,
  )

it('every job of the agent has a list of its inputs, with all that its guide names', () => {
  expect([...JOB_INPUTS.keys()].sort()).toEqual([...JOBS].sort())
  const guide = readFileSync(join(ROOT, 'apps/cli/agent/README.md'), 'utf8')
  const rows = [...guide.matchAll(/^\| `([a-z.]+)` +\| (.+?) +\|/gm)].filter(([, job = '']) => JOB_INPUTS.has(job))
  expect(rows).toHaveLength(JOBS.length)
  for (const [, job = '', inputs = ''] of rows) {
    const named = [...inputs.matchAll(/`([^`]+)`/g)]
      .flatMap(([, list = '']) =>
        list
          .replace(/\{\}/g, '')
          .replace(/\{[^}]*\}/g, '')
          .split(/, /),
      )
      .map((name) => name.replace(/[?[\]]+$/g, ''))
      .filter((name) => !JOB_INPUTS.has(name))
    const known = Object.keys((JOB_INPUTS.get(job) as { properties?: object }).properties ?? {})
    expect(known, job).toEqual(expect.arrayContaining(named))
  }
})

it('an input that a job would ignore, or take for another, is named with its place', () => {
  expect(faults('opentofu.preview', { workspce: 'prod', destory: true, destroy: 'yes' })).toEqual([
    '/workspce is not an input of opentofu.preview; did you mean "workspace"?',
    '/destory is not an input of opentofu.preview; did you mean "destroy"?',
    '/destroy must be true or false',
  ])
  expect(faults('command', { program: 'x', argz: [], timeout_s: '1' })).toEqual([
    '/argz is not an input of command; did you mean "args"?',
    '/timeout_s must be a number',
  ])
  expect(faults('ssh', { host: { adress: 'a', host_keys: [1] }, args: [{}] })).toEqual(
    expect.arrayContaining([
      '/args/0 must be a string or a number',
      '/host/adress is not an input of ssh; did you mean "address"?',
      '/host/host_keys/0 must be a string',
    ]),
  )
  expect(faults('ansible.run', { inventory: { hosts: { a: { prt: 1 }, b: null } } })).toEqual([
    '/inventory/hosts/a/prt is not an input of ansible.run; did you mean "port"?',
  ])
  expect(faults('kubernetes.apply', { wait: { timeout_s: '9' } })[0]).toBe('/wait/timeout_s must be a number')
  expect(faults('ssh', { stdin: 7 })).toEqual(['/stdin must be a string'])
  expect(faults('command', { program: 'x', constructor: 1 })).toEqual(['/constructor is not an input of command'])
})

it('no number of other faults hides one', () => {
  const later = { $from: 'nodes/a/outputs/b' }
  const many = [...'abcdefghijklmnopqrstuvwxyz'].map((letter) => `workspace${letter}`)
  const found = faults('opentofu.preview', Object.fromEntries(many.map((name) => [name, 1])))
  expect(found.map((fault) => fault.split(' ')[0])).toEqual(many.map((name) => `/${name}`))
  expect(found.filter((fault) => fault.includes('did you mean'))).toHaveLength(20)
  const typos = Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`argz${i}`, 1]))
  expect(faults('command', typos)).toHaveLength(9)
  expect(faults('command', { args: [later, later], timout_s: 1 })).toEqual([
    '/timout_s is not an input of command; did you mean "timeout_s"?',
  ])
  expect(faults('ansible.run', { inventory: { hosts: { a: 7 } } })).toEqual(['/inventory/hosts/a must be an object'])
  expect(faults('kubernetes.apply', { wait: true })).toEqual([
    '/wait must be an object of timeout_s and ready_if, or false',
  ])
})

it('values that are known later, jobs of other agents and the inputs of a preview are left alone', () => {
  const later = { $from: 'nodes/a/outputs/b' }
  expect(faults('ssh', { program: 'x', host: later, args: [later, 1], timeout_s: later })).toEqual([])
  expect(faults('greet', { anything: 1 })).toEqual([])
  expect(faults('opentofu.apply', { source: 'web', ref: 'main', variables: {}, preview: later })).toEqual([])
  expect(faults('kubernetes.apply', { cluster: 'a', preview: later, wait: false })).toEqual([])
  for (const job of ['kubernetes.apply', 'kubernetes.undo'])
    expect(faults(job, { cluster: 'a', namespace: 'web', set: 'web', objects: [], preview: later })).toEqual([])
  expect(faults('command', { program: 'act', args: [], preview: later })).toEqual([])
  expect(faults('ssh', { host: { address: 'a', user: null, host_keys: null }, stdin: null })).toEqual([])
  expect(faults('kubernetes.preview', { noise: null, conflict: null })).toEqual([
    '/conflict is not an input of kubernetes.preview; did you mean "conflicts"?',
  ])
})
