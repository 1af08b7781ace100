import { expect, it, vi } from 'vitest'
import { api } from '../../apps/console/api/client.ts'
import { textOf } from '../../apps/console/proof/list.tsx'
import {
  actionWords,
  codeOf,
  detailsOf,
  personOf,
  readAudit,
  readable,
  typedOf,
} from '../../apps/console/queries/audit.ts'
import { tAudit } from '../../apps/console/words/audit.ts'
import { audit as inGerman } from '../../apps/console/words-de/frame/audit.ts'

// Modules of pages listen to the window when they are loaded.
vi.hoisted(() => vi.stubGlobal('window', { addEventListener: () => {} }))

const CODES = [
  ['operations', ['notify.rules.change', 'notify.destination.add', 'notify.device.subscribe']],
  ['operations', ['notify.delivery.redeliver', 'patch_decided', 'plan.create']],
  ['users', ['dual_control.started', 'directory_group.created', 'machine.credential_created']],
  ['catalog', ['POST /v1/resources:import', 'POST /v1/imports']],
] as const

it('shows the lines of an artifact of any system, and each character that deceives', () => {
  expect(textOf('a,b\r\nc,d\r\n', 'text/csv')).toBe('a,b\nc,d\n')
  expect(textOf('paid\rowed\u202e', 'text/plain')).toBe('paidU+000DowedU+202E')
})

it('shows names for known ids of people, and the ends of all other ids', () => {
  const olga = '0195f0c2-7c1d-7e38-9d55-2b1c8a4f7e10'
  const names = new Map([[olga, 'olga']])
  expect(readable(`user:${olga}`, names)).toBe('user:olga')
  expect(readable('gate:01a202a5-366a-756a-87e5-357aa020d966/cutover', names)).toBe('gate:20d966/cutover')
  expect(readable('resource:eu1-web-01', names)).toBe('resource:eu1-web-01')
  const grant = { subject_type: 'user', subject_id: olga, role: 'operator', scope: {}, expires_at: null }
  expect(detailsOf(grant, names)).toBe('subject_type: user, subject_id: olga, role: operator')
})

it("queries the logs by the person's id that it knows, whether a name or an id was typed", () => {
  const olga = '0195f0c2-7c1d-7e38-9d55-2b1c8a4f7e10'
  const names = new Map([[olga, 'olga']])
  for (const typed of ['olga', 'user:olga', olga, `user:${olga}`]) expect(personOf(typed, names)).toBe(`user:${olga}`)
  for (const typed of ['svc:worker', 'system', '', 'user:0195f0c2', 'resource:eu1-web-01'])
    expect(personOf(typed, names)).toBe(typed)
})

it('asks for the events about a person by id, and with any other text for an object of that name', async () => {
  const olga = '0195f0c2-7c1d-7e38-9d55-2b1c8a4f7e10'
  const get = vi.spyOn(api, 'GET').mockResolvedValue({ data: { items: [] }, response: new Response() } as never)
  const typed = [`user:${olga}`, 'user:evva', 'user:0195f0c2', 'grant:x']
  const find = { actor: '', action: '', from: '', to: '' }
  for (const object of typed) await readAudit('users', { ...find, object }, { page_size: 1 })
  const calls = get.mock.calls as unknown as [string, { params: { query: object } }][]
  const asked = calls.map(([, { params }]) => params.query)
  get.mockRestore()
  const objects = typed.slice(1).map((object) => ({ page_size: 1, object }))
  expect(asked).toEqual([{ page_size: 1, user_id: olga }, ...objects])
})

it('says what was done in words, also of routes and of actions that it does not know', () => {
  expect(actionWords('gate_decided')).toBe('Gate decided')
  expect(actionWords('machine.credential_created')).toBe('Machine credential created')
  expect(actionWords('start')).toBe('Operation started')
  const applied = 'POST /internal/v1/resources/:resource_id/apply-operation-result'
  expect(actionWords(applied)).toBe('Result of an operation applied')
  expect(actionWords('POST /v1/resources::import')).toBe('Resource imported')
})

it('takes an action as the rows show it, or its code', async () => {
  expect(codeOf('Gate decided', 'operations')).toBe('gate_decided')
  expect(codeOf('operation started', 'operations')).toBe('start')
  expect(codeOf('Intent create', 'operations')).toBe('intent.create')
  expect(codeOf('Machine credential created', 'users')).toBe('machine.credential_created')
  expect(codeOf('Resource changed in bulk', 'catalog')).toBe('POST /v1/resources:bulk')
  for (const code of ['gate_decided', 'intent.create', 'POST /v1/imports', ''])
    expect(codeOf(code, 'operations')).toBe(code)
  for (const { actions } of [tAudit.audit, inGerman])
    expect(new Set(Object.values(actions)).size).toBe(Object.keys(actions).length)
  for (const [source, codes] of CODES) for (const code of codes) expect(typedOf(code, source)).toBe(actionWords(code))
  const get = vi.spyOn(api, 'GET').mockResolvedValue({ data: { items: [] }, response: new Response() } as never)
  const find = { actor: '', object: '', from: '', to: '' }
  await readAudit('operations', { ...find, action: 'Gate decided' }, { page_size: 1 })
  await readAudit('users', { ...find, action: 'User created' }, { page_size: 1 })
  const calls = get.mock.calls as unknown as [string, { params: { query: object } }][]
  const asked = calls.map(([, { params }]) => params.query)
  get.mockRestore()
  expect(asked).toEqual([
    { page_size: 1, action: 'gate_decided' },
    { page_size: 1, type: 'user.created' },
  ])
})
