import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { outcomeOf } from '../../apps/cli/agent/jobs/ansible.ts'
import { yamlOf } from '../../apps/cli/agent/jobs/inventory.ts'
import { movedFrom } from '../../apps/cli/agent/kubernetes/check.ts'
import { differences, type KubeObject, leavesOf, partOf } from '../../apps/cli/agent/kubernetes/fields.ts'
import { objectsOf } from '../../apps/cli/agent/kubernetes/render.ts'
import { changesOf, planIn } from '../../apps/cli/agent/tofu/changes.ts'
import { createDiff } from '../../apps/cli/agent/tools/diff.ts'
import { pictureOf, sidesOf } from '../../apps/cli/agent/tools/picture.ts'
import { fetchSealed, keyWords, seal, sealedWith, unseal } from '../../apps/cli/agent/tools/seal.ts'
import { copySource } from '../../apps/cli/agent/tools/source.ts'
import { Ended, type Job, runTool } from '../../apps/cli/agent/tools/types.ts'
import { seal as sealBy } from '../../apps/shared/codec/seal.ts'
import { sha256Hex } from '../../apps/shared/data/digest.ts'
import { lineMaskerOf, maskerOf, maskIn } from '../../apps/shared/data/mask.ts'
import { digitsOf, parseDigits, parseExact, writeExact } from '../../apps/shared/run/exact.ts'
import { removeTree } from '../../apps/shared/run/remove.ts'

const SECRET = 'hunter2-is-one'
const plain = (text: string) => text
const planOf = (change: object) => ({
  resource_changes: [{ address: 'a.b', change: { actions: ['update'], ...change } }],
})

it('shows no value that the tool marks as sensitive, before or after, however deep, and that it changes', () => {
  const plan = planOf({
    before: { whole: [{ p: SECRET }], deep: { list: [{ key: SECRET, open: 1 }] }, same: SECRET, was: `x ${SECRET}` },
    after: { whole: [{ p: 'other' }], deep: { list: [{ key: `${SECRET}2`, open: 2 }] }, same: SECRET, was: 'open' },
    before_sensitive: { whole: [{ p: true }], deep: { list: [{ key: true }] }, same: true, was: true },
    after_sensitive: { whole: true, deep: { list: [{ key: true }] }, same: true },
  })
  const made = changesOf(
    { ...plan, output_changes: { s: { actions: ['create'], after: SECRET, after_sensitive: true } } },
    plain,
  )
  expect(JSON.stringify(made)).not.toContain('hunter2')
  expect(made.changes.find(({ id }) => id === 'a.b')?.fields).toEqual([
    { path: '/deep/list/0/key', sensitive: true },
    { path: '/deep/list/0/open', before: 1, after: 2 },
    { path: '/was', sensitive: true },
    { path: '/whole', sensitive: true },
  ])
})

it('shows no value with a secret part when the whole of it becomes unknown, or another type', () => {
  const before = { input: { user: 'a', list: [{ password: SECRET }] } }
  const marks = { input: { list: [{ password: true }] } }
  const fieldsOf = (change: object) => changesOf(planOf(change), plain).changes[0]?.fields
  expect(fieldsOf({ before, after: {}, after_unknown: { input: true }, before_sensitive: marks })).toEqual([
    { path: '/input', sensitive: true, unknown: true },
  ])
  for (const other of ['x', 7])
    for (const change of [
      { before, after: { input: other }, before_sensitive: marks, after_sensitive: {} },
      { before: { input: other }, after: before, before_sensitive: { input: false }, after_sensitive: marks },
    ])
      expect(fieldsOf(change)).toEqual([{ path: '/input', sensitive: true }])
  expect(fieldsOf({ before, after: { input: 'x' }, before_sensitive: { input: { list: [{}] } } })).toEqual([
    { path: '/input', before: before.input, after: 'x' },
  ])
})

it('reads only listed members, and masks credentials in every spelling', () => {
  const value = 'p"q+1234/='
  const mask = maskerOf([value])
  const spelled = [value, Buffer.from(value).toString('base64'), encodeURIComponent(value)]
  const plan = {
    ...planOf({ before: {}, after: { spelled } }),
    variables: { v: value },
    prior_state: value,
    planned_values: value,
  }
  const text = JSON.stringify(changesOf(plan, mask))
  for (const one of [...spelled, JSON.stringify(value).slice(1, -1)]) expect(text).not.toContain(one)
  expect(text.match(/•••/g)).toHaveLength(3)
})

it('masks each spelling that a tool may give a secret, also inside a longer encoding and cut off from it', () => {
  const value = 'päss<w&rd "x/y+z" 9'
  const [bytes, json] = [Buffer.from(value), JSON.stringify(value).slice(1, -1)]
  const spelled = [
    ...['a:', 'ab:', 'abc:'].map((user) => Buffer.from(`${user}${value}:more`).toString('base64')),
    Buffer.from(`user:${value}`).toString('base64url'),
    bytes.toString('base64').replace(/=+$/, ''),
    bytes.toString('hex'),
    JSON.stringify(json).slice(1, -1),
    json.replace(/[<>&]/g, (char) => `\\u00${char.charCodeAt(0).toString(16)}`),
    json.replace('ä', '\\u00e4'),
    encodeURIComponent(value).toLowerCase(),
    new URLSearchParams({ v: value }).toString(),
  ]
  const mask = maskerOf([value])
  for (const one of spelled) {
    const shown = mask(one)
    expect(shown, one).toContain('•••')
    // At most the characters of its encoding that its neighbors share with it.
    expect(shown.replace('•••', '').length, one).toBeLessThan(16)
  }
})

it('masks the beginning of a value at the end of a text that was cut', () => {
  const value = 'sk-live-0123456789abcdefghijklmnopqrstuv'
  const mask = maskerOf([value, 'other-value-1'])
  const base64 = Buffer.from(value).toString('base64')
  for (const left of [4, 20, value.length - 1]) {
    expect(mask(`x ${value} ${value.slice(0, left)}`, { cut: true })).toBe('x ••• •••')
    expect(mask(`x ${base64.slice(0, left)}`, { cut: true })).toBe('x •••')
  }
  expect(mask('a long line of an honest tool', { cut: true })).toBe('a long line of an honest tool')
  expect(mask(`x ${value.slice(0, 20)}`)).toBe(`x ${value.slice(0, 20)}`)
})

it('masks a value that the ends of lines break, wherever they do, and keeps every line in its order', () => {
  const value = 'sk-live-0123456789abcdefghijklmnopqrstuv'
  const shownOf = (...lines: [text: string, stream?: string, cut?: boolean][]) => {
    const masker = lineMaskerOf(maskerOf([value, 'other-value-1']))
    const added = lines.flatMap(([text, stream = 'stdout', cut = false]) => masker.add(text, { stream, cut }))
    return [...added, ...masker.rest()].map(({ text }) => text)
  }
  for (const spelled of [value, Buffer.from(value).toString('base64')])
    for (const width of [1, 2, 7, 20, spelled.length - 1, spelled.length + 2]) {
      const lines = `x ${spelled} y`.match(new RegExp(`.{1,${width}}`, 'g')) ?? []
      const shown = shownOf(...lines.map((text): [string] => [text]))
      expect(shown, `${width}`).toHaveLength(lines.length)
      expect(shown.join('').replaceAll('•••', ''), `${width}`).toBe('x  y')
    }
  expect(shownOf(['a othe'], ['r-value-1sk-live-'], [`${value.slice(8)} b`])).toEqual(['a •••', '••••••', '••• b'])
  const both = (secrets: string[], ...lines: string[]) => {
    const masker = lineMaskerOf(maskerOf(secrets))
    const added = lines.flatMap((text) => masker.add(text, { stream: 'stdout' }))
    return [...added, ...masker.rest()].map(({ text }) => text)
  }
  expect(both(['pass', 'secret-key'], 'a pas', 'secret-key b')).toEqual(['a •••', '••• b'])
  expect(both(['pas-secret-key-x', 'secret-key'], 'a pas-', 'secret-key-x b')).toEqual(['a •••', '••• b'])
  const half = value.slice(0, 20)
  for (const honest of [
    [['an honest s'], ['k-line of a tool'], ['']],
    [[`x ${half}`], [''], [value.slice(20)]],
    [[`x ${half}`], ['a warning', 'stderr'], [value.slice(20)]],
    [[`x ${half}`]],
  ] as [string, string?][][])
    expect(shownOf(...honest)).toEqual(honest.map(([text]) => text))
  expect(shownOf([`x ${half}`, 'stdout', true], ['y'])).toEqual(['x •••', 'y'])
})

it('masks a long key that a tool wraps, or takes out of the JSON of its credential', () => {
  const body = randomBytes(300).toString('base64')
  const key = `-----BEGIN KEY-----\n${body.match(/.{1,64}/g)?.join('\n')}\n-----END KEY-----\n`
  const mask = maskerOf([key, JSON.stringify({ type: 'x', private_key: key }, null, 2)])
  for (const width of [64, 76]) {
    const lines =
      Buffer.from(key)
        .toString('base64')
        .match(new RegExp(`.{1,${width}}`, 'g')) ?? []
    // At most the end of the last line is left.
    expect(lines.map(mask).join('').replaceAll('•••', '').length).toBeLessThan(8)
  }
  expect(maskerOf([JSON.stringify({ private_key: key })])(key)).not.toMatch(/[A-Za-z0-9+/]{20}/)
})

it('a value that is also a number or a word of JSON leaves the JSON readable', () => {
  const mask = maskerOf(['5432', 'true', 'null'])
  expect(maskIn({ port: 5432, other: 15432, on: true, none: null, url: 'db:5432', list: ['5432'] }, mask)).toEqual({
    ...{ port: '•••', other: 15432, on: true, none: null, url: 'db:•••', list: ['•••'] },
  })
  const plan = planOf({ before: { port: 5431, on: false }, after: { port: 5432, on: true } })
  expect(changesOf(plan, mask).changes[0]?.fields).toEqual([
    { path: '/on', before: false, after: true },
    { path: '/port', before: 5431, after: '•••' },
  ])
})

it('output of the tool that is no JSON ends the job with the reason', () => {
  for (const said of ['[INFO] using 1.8\n{}', '{"resource_changes": [{"addr', ''])
    expect(() => planIn(said)).toThrow(
      expect.objectContaining({
        verdict: expect.objectContaining({ class: 'tool_failed', message: expect.stringContaining('one JSON object') }),
      }),
    )
})

it('an update of the last digit is shown before the point, and said to be lost behind it', () => {
  const shown = (before: string, after: string) =>
    changesOf(
      planIn(
        `{"resource_changes": [{"address": "a.b", "change": {"actions": ["update"], "before": {"n": ${before}}, "after": {"n": ${after}}}}]}`,
      ),
      plain,
    ).changes[0]
  const [before, after] = ['12345678901234567890', '12345678901234567891']
  expect(shown(before, after)).toMatchObject({ fields: [{ path: '/n', before, after }] })
  expect(shown(`${before}.5`, `${after}.5`)).toMatchObject({ fields: [{ path: '/n', before: `${before}.5` }] })
  const lost = shown(`0.${before}`, `0.${after}`)
  expect(lost).toMatchObject({ action: 'update', fields: [], note: expect.stringContaining('very long number') })
  expect(shown('1', '2')?.note).toBeUndefined()
})

it('a playbook of ten thousand hosts tells of the failed and the changed ones, and the sums of all', () => {
  const none = { ok: 3, changed: 0, failed: 0, unreachable: 0, skipped: 0 }
  const hosts = Object.fromEntries(
    Array.from({ length: 10_000 }, (_, i) => [
      `host-${i}.example.com`,
      { ...none, ...(i === 9_998 && { changed: 1 }), ...(i === 9_999 && { failed: 1 }) },
    ]),
  )
  const made = outcomeOf(hosts)
  expect(JSON.stringify(made).length).toBeLessThan(200_000)
  expect(Object.keys(made.hosts).slice(0, 2)).toEqual(['host-9999.example.com', 'host-9998.example.com'])
  expect(made).toMatchObject({ hosts_count: 10_000, sums: { ok: 30_000, changed: 1, failed: 1 } })
  expect(outcomeOf({ a: none }).hosts).toEqual({ a: none })
})

it('refuses an integer of a manifest that would reach the cluster rounded, and no other number', () => {
  const manifest = (value: string) => `apiVersion: v1\nkind: X\nmetadata: { name: x }\nspec: { n: ${value} }`
  for (const value of ['9007199254740993', '1152921504606846976', '-9007199254740993', '0x20000000000001'])
    expect(() => objectsOf(manifest(value), 'x.yaml')).toThrow(
      expect.objectContaining({ verdict: expect.objectContaining({ message: expect.stringContaining(value) }) }),
    )
  for (const value of ['9007199254740991', '1e30', '0644', '"9007199254740993"', '18446744073709551616.5'])
    expect(objectsOf(manifest(value), 'x.yaml')).toHaveLength(1)
})

it('keeps an integer of the cluster exact: in a difference, in an approved field, and in what an undo writes', () => {
  const text = (size: string, note: string) =>
    `{"apiVersion":"v1","kind":"X","metadata":{"name":"x"},"spec":{"size":${size},"ids":[-9223372036854775808,7],"r":1.5e300,"note":${note}}}`
  const [one, two] = ['9007199254740993', '9007199254740992'].map(
    (size) => parseExact(text(size, '"1234567890123456789 \\" 9007199254740993"')) as KubeObject,
  ) as [KubeObject, KubeObject]
  const owned = { 'f:spec': { 'f:size': {}, 'f:ids': { 'v:-9223372036854775808': {} } } }
  expect(writeExact(partOf(one, owned))).toBe(
    '{"spec":{"size":9007199254740993,"ids":[-9223372036854775808]},"apiVersion":"v1","kind":"X","metadata":{"name":"x"}}',
  )
  const [found, ...more] = differences(leavesOf(one), leavesOf(two))
  expect(more).toEqual([])
  expect([found?.path, digitsOf(String(found?.before)), digitsOf(String(found?.after))]).toEqual([
    ...['/spec/size', '9007199254740993', '9007199254740992'],
  ])
  expect((one.spec as { note: string }).note).toBe('1234567890123456789 " 9007199254740993')
  const long = JSON.stringify({ a: 'x'.repeat(5_000_000), n: 1 }).replace('1}', '9007199254740993}')
  expect(writeExact(parseExact(long))).toBe(long)
  const large = `{"a":"${'x'.repeat(20_000_000)}","n":9007199254740993}`
  expect(parseExact(large)).toMatchObject({ n: expect.stringMatching(/9007199254740993$/) })
  const began = performance.now()
  // Output that was cut off within a text.
  expect(() => parseExact(`{"n":9007199254740993,"a":"${'\\"'.repeat(20_000)}`)).toThrow(SyntaxError)
  expect(performance.now() - began).toBeLessThan(1000)
})

it('reads the digits beside a text of any length, and tells a long text that was cut in no time', () => {
  const wide = '12345678901234567890'
  for (const text of ['x'.repeat(16_000_000), '"'.repeat(8_000_000), '\\'.repeat(8_000_000), '1'.repeat(16_000_000)])
    expect(parseDigits(`{"a":${JSON.stringify(text)},"b":-${wide}}`)).toEqual({ a: text, b: `-${wide}` })
  const parts = [`1.${wide}`, `1e-${wide}`, `${wide}.5`, `${wide}e2`, '9007199254740991']
  const [name, note] = ['\\', `\\",${wide}`]
  const members = [`"${wide}":[${parts.join()}]`, `${JSON.stringify(name)}:${JSON.stringify(note)}`]
  const numbers = [...parts.slice(0, 2).map(Number), ...parts.slice(2, 4), 9007199254740991]
  expect(parseDigits(`{${members.join()}}`)).toEqual({ [wide]: numbers, [name]: note })
  expect(parseDigits('[1e400,-1.5E+400,1e22,1e3,1e-400,0.5]')).toEqual(['1e400', '-1.5E+400', '1e22', 1000, 0, 0.5])
  expect(parseExact('[1e22,1.5]')).toEqual([1e22, 1.5])
  const before = process.cpuUsage()
  expect(() => parseDigits(`{"b":${wide},"a":"${'\\"'.repeat(100_000)}`)).toThrow(SyntaxError)
  const { user, system } = process.cpuUsage(before)
  expect((user + system) / 1000).toBeLessThan(1000)
})

it('an object that someone else created after the preview has moved, and one of an earlier try has not', () => {
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x' }, data: { a: '1' } }
  const fields = [{ path: '/data/a', after: '1' }]
  const item = { object, manager: 'signalbox-web', action: 'create' as const, taken: [], fields }
  const by = (manager: string) => {
    const managedFields = [{ manager, operation: 'Apply', fieldsV1: { 'f:data': { 'f:a': {} } } }]
    const live = { ...object, metadata: { name: 'x', managedFields } }
    return movedFrom(item, { action: 'none', fields: [], taken: [], live, after: live }, [])
  }
  expect([by('kubectl'), by('signalbox-web')]).toEqual(['it exists now', undefined])
})

it('marks values known after apply at their paths, in lists too', () => {
  const made = changesOf(
    planOf({ before: { l: ['a', 'b'] }, after: { l: ['a'] }, after_unknown: { l: [false, true], id: true } }),
    plain,
  )
  expect(made.changes[0]?.fields).toEqual([
    { path: '/id', unknown: true },
    { path: '/l/1', before: 'b', unknown: true },
  ])
  expect(made.unknowns).toBe(2)
})

it('a diff of 20 MB has a picture that fits into the outputs, the heaviest first, and a digest over all of it', () => {
  const many = (last: string) => ({
    resource_changes: Array.from({ length: 2000 }, (_, i) => ({
      address: `a.${i}`,
      change: {
        actions: i === 1999 ? ['delete', 'create'] : ['create'],
        after: {
          big: 'x'.repeat(10_000),
          last: i === 0 ? last : '',
          ...Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`f${n}`, `${n}`])),
        },
      },
    })),
  })
  const made = changesOf(many('a'), plain)
  expect(JSON.stringify(made).length).toBeLessThan(200_000)
  expect([made.changes_count, made.changes[0]?.action]).toEqual([2000, 'replace'])
  expect(made.digest).not.toBe(changesOf(many('b'), plain).digest)
})

it('a sealed plan opens for its operation and its key alone, and only unchanged', () => {
  const folders = [mkdtempSync(join(tmpdir(), 'seal-')), mkdtempSync(join(tmpdir(), 'seal-'))] as const
  const bytes = Buffer.from('a plan')
  const sealed = seal(folders[0], 'one', bytes)
  expect(sealed.includes(bytes)).toBe(false)
  expect(unseal(folders[0], 'one', sealed)).toEqual(bytes)
  const changed = Buffer.from(sealed)
  changed.writeUInt8(changed.readUInt8(changed.length - 1) ^ 1, changed.length - 1)
  for (const [folder, operation, given] of [
    [folders[0], 'two', sealed],
    [folders[1], 'one', sealed],
    [folders[0], 'one', changed],
    [folders[0], 'one', Buffer.from('no seal at all')],
  ] as const)
    expect(unseal(folder, operation, given)).toBeUndefined()
  for (const folder of folders) rmSync(folder, { recursive: true })
})

it('what an earlier agent saved for its operation alone opens for the undo of its objects only', async () => {
  const state_dir = mkdtempSync(join(tmpdir(), 'seal-'))
  const bytes = Buffer.from('objects')
  let kept = seal(state_dir, 'one', bytes)
  const jobOf = (job: string, key: string) =>
    ({
      file: { state_dir },
      work: { operation_id: 'one', job, key },
      mask: (text: string) => text,
      keep: async (_about: object, sealed: Buffer) => {
        kept = sealed
        return { sha256: 'of-the-sealed' }
      },
      fetch: async () => kept,
    }) as never as Job
  const made = await sealedWith(jobOf('kubernetes.preview', 'one:see:1'), 'objects', { changes: 1 }, bytes)
  const [apply, undo] = [jobOf('kubernetes.apply', 'one:go:1'), jobOf('kubernetes.undo', 'one:go:c1')]
  for (const job of [apply, undo]) expect(await fetchSealed(job, 'objects', made)).toEqual(bytes)
  const other = { ...made, changes: 2 }
  for (const job of [apply, undo])
    await expect(fetchSealed(job, 'objects', other)).rejects.toMatchObject({ verdict: { class: 'agent_refused' } })

  kept = Buffer.concat([Buffer.from('sbx1'), sealBy(readFileSync(join(state_dir, 'seal.key')), 'one', bytes)])
  expect(await fetchSealed(undo, 'objects', made)).toEqual(bytes)
  for (const job of [apply, jobOf('kubernetes.undo', 'one:go:1'), jobOf('opentofu.apply', 'one:go:c1')])
    await expect(fetchSealed(job, 'objects', made)).rejects.toMatchObject({ verdict: { class: 'agent_refused' } })
  rmSync(state_dir, { recursive: true })
})

it('a program whose arguments or variables the system does not take has not begun', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'runs-'))
  const ended = (arg: string, env: Record<string, string>) =>
    runTool(
      {
        ...{ file: {}, folder, env, executed: {}, signal: new AbortController().signal, log: () => {} },
        ...{ stored: async () => {}, began: () => {}, left_ms: () => 20_000, own_ms: () => Infinity },
      } as never as Job,
      { path: '/bin/true', args: [arg], cwd: folder, grace_s: 1 },
    )
  expect(await ended('x'.repeat(140_000), {})).toMatchObject({ how: 'not_begun', message: 'spawn E2BIG' })
  expect(await ended('x', { KEY: 'a\0b' })).toMatchObject({ how: 'not_begun' })
  expect(await ended('x', {})).toMatchObject({ how: 'ended', code: 0 })
  rmSync(folder, { recursive: true })
})

it('evidence of a job states its last acting run, without anything of the run before', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'runs-'))
  const job = {
    ...{ file: {}, folder, env: { PATH: process.env.PATH ?? '' }, executed: {}, signal: new AbortController().signal },
    ...{ log: () => {}, stored: async () => {}, began: () => {}, left_ms: () => 20_000, own_ms: () => Infinity },
  } as never as Job
  const run = async (path: string, args: string[], aside = false) => {
    await runTool(job, { path, args, cwd: folder, grace_s: 1, aside })
    return { ...job.executed }
  }
  const tool_sha256 = sha256Hex(readFileSync('/bin/sh'))
  expect(await run('/bin/sh', ['-c', 'exit 3'])).toEqual({ tool: 'sh', tool_sha256, exit: 3 })
  expect(await run('/bin/sh', ['-c', 'exit 4'], true)).toEqual({ tool: 'sh', tool_sha256, exit: 3 })
  expect(await run('/bin/sh', ['-c', 'kill -KILL $$'])).toEqual({ tool: 'sh', tool_sha256 })
  expect(await run(join(folder, 'missing'), [])).toEqual({ tool: 'missing', exit: 127 })
  rmSync(folder, { recursive: true })
})

it('a key that was only half written is refused with what to do, and is not replaced', () => {
  const folder = mkdtempSync(join(tmpdir(), 'seal-'))
  const sealed = seal(folder, 'one', Buffer.from('a plan'))
  expect(readdirSync(folder)).toEqual(['seal.key'])
  const other = mkdtempSync(join(tmpdir(), 'seal-'))
  const named = [folder, folder, other].map((state_dir) => /\(([0-9a-f]{8})\)/.exec(keyWords({ state_dir }))?.[1])
  expect([named[0] === named[1], named[1] === named[2], named]).toEqual([
    true,
    false,
    Array(3).fill(expect.any(String)),
  ])
  rmSync(other, { recursive: true })
  writeFileSync(join(folder, 'seal.key'), 'half')
  expect(keyWords({ state_dir: folder })).toMatch(/is not a key/)
  for (const act of [() => seal(folder, 'one', sealed), () => unseal(folder, 'one', sealed)]) {
    const message = expect.stringMatching(/seal\.key is not a key.*Copy/)
    expect(act).toThrow(expect.objectContaining({ verdict: { status: 'failed', class: 'agent_refused', message } }))
  }
  rmSync(folder, { recursive: true })
})

it('what a job made read-only is removed with the rest, and nothing that its links lead to', () => {
  const folder = mkdtempSync(join(tmpdir(), 'left-'))
  const [place, other] = [join(folder, 'place'), join(folder, 'other')]
  for (const path of [join(place, 'a/b'), other]) mkdirSync(path, { recursive: true })
  for (const path of [join(place, 'a/b/key'), join(other, 'kept')]) writeFileSync(path, 'x')
  symlinkSync(other, join(place, 'a/link'))
  // As root no folder is read-only.
  const isRoot = process.getuid?.() === 0
  if (isRoot)
    for (const path of [folder, other, place, join(place, 'a'), join(place, 'a/b')]) chownSync(path, 1500, 1500)
  chmodSync(other, 0o500)
  chmodSync(join(place, 'a/b'), 0o500)
  chmodSync(join(place, 'a'), 0)
  if (isRoot) process.seteuid?.(1500)
  try {
    removeTree(place)
  } finally {
    if (isRoot) process.seteuid?.(0)
  }
  expect([existsSync(place), statSync(other).mode & 0o777, readdirSync(other)]).toEqual([false, 0o500, ['kept']])
  rmSync(folder, { recursive: true })
})

it('masks a hunk before it cuts it: no part of a secret is left at the edge, and the digest covers all', () => {
  const diffOf = (last: string) => {
    const diff = createDiff(maskerOf([SECRET]))
    const lines = [
      '--- a',
      '+++ b',
      '@@ -1,2 +1 @@',
      `-${'x'.repeat(158)}${SECRET}${'y'.repeat(400)}`,
      '--- no header',
      '+after',
      `+${last}`,
    ]
    for (const line of lines) diff.read(line)
    return diff.change(`of ${SECRET}`, 'update')
  }
  const [field] = diffOf('1').fields
  expect(field).toMatchObject({ path: '/line 1', after: 'after\n1' })
  expect(String(field?.before)).toMatch(/^x{158} … y{147}\n-- no header \(\d+ characters\)$/)
  expect(JSON.stringify(diffOf('1'))).not.toContain('hunt')
  expect(diffOf('1').digest).not.toBe(diffOf('2').digest)
})

it.each([
  ['after a long start', (word: string) => `${'same '.repeat(200)}"Effect": "${word}"`],
  ['between long texts', (word: string) => `${'same\n'.repeat(200)}"Effect": "${word}"\n${'more\n'.repeat(200)}`],
  ['as the last of two', (word: string) => `"Version": ${word.length}\n${'same\n'.repeat(200)}"Effect": "${word}"`],
  ['as its first word', (word: string) => `"Effect": "${word}"${' more'.repeat(200)}`],
])('texts that differ %s never look alike: each side shows its own words', (_what, textOf) => {
  const [was, is] = ['Deny', 'Allow'].map(textOf) as [string, string]
  const picture = changesOf(planOf({ before: { policy: was }, after: { policy: is } }), plain).changes[0]
  const diff = createDiff(maskerOf([]))
  diff.read('@@ -1 +1 @@')
  for (const [sign, text] of [['-', was] as const, ['+', is] as const])
    for (const line of text.split('\n')) diff.read(`${sign}${line}`)
  const hunk = pictureOf([diff.change('policy.json', 'update')]).changes[0]
  for (const shown of [picture, hunk]) {
    expect(String(shown?.fields[0]?.before)).toContain('"Effect": "Deny"')
    expect(String(shown?.fields[0]?.after)).toContain('"Effect": "Allow"')
    for (const side of [shown?.fields[0]?.before, shown?.fields[0]?.after])
      expect(String(side)).toMatch(/^.{1,399}\(\d+ characters\)$/s)
  }
})

it('a cut divides no mask, and two texts that differ far behind what is kept say so', () => {
  const [was, is] = ['a', 'b'].map((end) => `${'•••'.repeat(500)} ${end}${'x'.repeat(500)}`)
  const [field] = changesOf(planOf({ before: { p: was }, after: { p: is } }), plain).changes[0]?.fields ?? []
  for (const side of [field?.before, field?.after])
    for (const [run] of String(side).matchAll(/•+/g)) expect(run.length % 3).toBe(0)
  const diff = createDiff(maskerOf([]))
  for (const line of ['@@ -1 +1 @@', `-${'x'.repeat(3_000_000)}a`, `+${'x'.repeat(3_000_000)}b`]) diff.read(line)
  const { before, after } = diff.change('f', 'update').fields[0] ?? {}
  expect([before === after, String(after).length < 400]).toEqual([false, true])
})

it('a value of bullets hides no other change: all are listed with a field, and kinds are of all', () => {
  const bullets = '•'.repeat(60_000)
  const [was, is] = ['a', 'b'].map((end) => bullets + end) as [string, string]
  const { before, after } = sidesOf({ text: was }, { text: is }) as { before: string; after: string }
  expect([before.endsWith('•a (60001 characters)'), after.endsWith('•b (60001 characters)')]).toEqual([true, true])
  expect(Math.max(before.length, after.length)).toBeLessThan(400)
  const of = (id: string, action: string, most = 6000) => {
    const [before, after] = [was.slice(-most), is.slice(-most)]
    return {
      id,
      action,
      note: was.slice(-most),
      fields: Array(30).fill({ path: `/${was.slice(-most)}`, before, after }),
    }
  }
  const all = [...Array(250).keys()].map((i) =>
    of(`aws_${i}.${'x'.repeat(2000)}`, i === 249 ? 'update' : 'replace', 1000),
  )
  const made = pictureOf(all)
  expect(JSON.stringify(made).length).toBeLessThan(200_000)
  expect(made.changes.length).toBeGreaterThan(20)
  for (const { fields, fields_count } of made.changes) expect([fields.length > 0, fields_count]).toEqual([true, 30])
  expect([made.changes_count, made.kinds.length, made.kinds.at(-1)]).toEqual([250, 250, 'update aws_249'])
  const few = pictureOf([of('aws_db_instance.a', 'replace'), of('aws_db_instance.b', 'update')]).changes
  expect(few.map(({ id }) => id)).toEqual(['aws_db_instance.a', 'aws_db_instance.b'])
})

it('two sides are never shown alike: where they differ is shown, or it is said that they do', () => {
  const text = (at: string) => `${'x'.repeat(600_000)}${at}${'x'.repeat(100_000)}`
  const diff = createDiff(maskerOf([SECRET, `${SECRET}-2`]))
  const hunk = (was: string, is: string) => ['@@ -1 +1 @@', `-${was}`, `+${is}`]
  const late = (end: string) => `${'y'.repeat(450)}${end}`
  const hunks = [hunk(text('A'), text('B')), hunk(text('A'), text('B')), hunk(late('A'), late(`A${'z'.repeat(200)}`))]
  for (const line of [...hunks.flat(), ...hunk(`p=${SECRET}`, `p=${SECRET}-2`)]) diff.read(line)
  const [change] = pictureOf([diff.change('f', 'update')]).changes
  for (const { before, after } of change?.fields.slice(0, 2) ?? [])
    expect(String(after).replace(/, and differs after \d+$/, ' differs')).toBe(`${before} differs`)
  expect(change?.fields[2]?.after).toMatch(/ \(651 characters\)/)
  expect(change?.fields[3]).toMatchObject({ before: 'p=•••', after: 'p=•••, and differs in what is not shown' })
  const values = { before: { a: SECRET, b: 1 }, after: { a: `${SECRET}-2`, b: '1' } }
  const made = changesOf(planOf(values), maskerOf([SECRET, `${SECRET}-2`])).changes[0]
  const unseen = (before: unknown) => `${before}, and differs in what is not shown`
  expect(made?.fields.map(({ before, after }) => [before, after])).toEqual([
    ['•••', unseen('•••')],
    [1, unseen(1)],
  ])
})

it('masks a value that the line ends of one text break', () => {
  const value = 'sk-live-0123456789abcdefghijklmnopqrstuv'
  const mask = maskerOf([value])
  for (const spelled of [value, Buffer.from(value).toString('base64')])
    for (const width of [1, 2, 7, 20]) {
      const text = `x\n${`a ${spelled} b`.match(new RegExp(`.{1,${width}}`, 'g'))?.join('\n')}\ny`
      expect(mask(text).replaceAll('•••', '').replaceAll('\n', ''), `${width}`).toBe('xa  by')
    }
  expect(mask('an honest s\nk-line\n')).toBe('an honest s\nk-line\n')
})

it('masks a value that line ends break in a diff, on the side where it is', () => {
  const value = 'sk-live-0123456789abcdefghijklmnopqrstuv'
  for (const spelled of [value, Buffer.from(value).toString('base64')]) {
    const parts = spelled.match(/.{1,9}/g) ?? []
    const diff = createDiff(maskerOf([value]))
    const old = ['-honest', ...parts.map((part) => `-${part}`)]
    for (const line of ['@@ -1 +1 @@', ...old, '+new', '@@ -9 +9 @@', '-x', ...parts.map((part) => `+${part}`)])
      diff.read(line)
    const { fields } = diff.change('key', 'update')
    const masked = parts.map(() => '•••').join('\n')
    expect(fields).toEqual([
      { path: '/line 1', before: `honest\n${masked}`, after: 'new' },
      { path: '/line 9', before: 'x', after: masked },
    ])
  }
})

it('a diff with more hunks than are shown gives their number', () => {
  const diff = createDiff(maskerOf([]))
  for (let i = 1; i <= 250; i += 1) for (const line of [`@@ -${i} +${i} @@`, '-a', '+b']) diff.read(line)
  const { fields, fields_count } = diff.change('file', 'update')
  expect([fields.length, fields_count]).toEqual([100, 250])
})

it('the YAML of a step contains no template and no line break', () => {
  const text = yamlOf({ 'a\u2028b': ["{{ lookup('pipe', 'id') }}", 1, true, null, { deep: 'x\n: y' }] })
  expect(text).toBe(`{"a\\u2028b": [!unsafe "{{ lookup('pipe', 'id') }}", 1, true, null, {"deep": !unsafe "x\\n: y"}]}`)
})

it('a copy of a source follows no link: not to the files of others, and not in circles', () => {
  const folder = mkdtempSync(join(tmpdir(), 'source-'))
  for (const name of ['real', 'outside']) mkdirSync(join(folder, name))
  for (const path of ['real/one.txt', 'outside/other.txt']) writeFileSync(join(folder, path), path)
  // Followed, these are 2 to the power of 40 paths.
  for (const name of ['a', 'b']) symlinkSync('.', join(folder, 'real', name))
  symlinkSync('real', join(folder, 'current'))
  const job = { file: { uid: process.getuid?.() === 0 ? 65_534 : undefined } } as unknown as Job
  const copy = (to: string) => copySource(job, 'web', join(folder, 'current'), join(folder, to), /^\.git$/)
  const digest = copy('one')
  expect(lstatSync(join(folder, 'one')).isDirectory()).toBe(true)
  expect(copy('two')).toBe(digest)
  symlinkSync('../outside', join(folder, 'real', 'c'))
  expect(() => copy('three')).toThrow(Ended)
  symlinkSync(join(folder, 'outside'), join(folder, 'real', 'c2'))
  expect(() => copy('four')).toThrow(Ended)
  expect(statSync(join(folder, 'outside/other.txt')).uid).toBe(process.getuid?.())
  rmSync(folder, { recursive: true })
})

it('masks a large text with many values and lines without holding up the agent', () => {
  const mask = maskerOf([SECRET])
  const line = `${'x'.repeat(36)} `
  const text = Array.from({ length: 20_000 }, (_, i) => `${line}${i % 2 === 0 ? SECRET : SECRET.slice(5)}`).join('\n')
  const before = process.cpuUsage()
  const masked = mask(text)
  const { user, system } = process.cpuUsage(before)
  expect((user + system) / 1000).toBeLessThan(1000)
  expect(masked).not.toContain(SECRET)
  expect(masked.split('\n')).toHaveLength(20_000)
})

it('masks a value that line ends of any kind break', () => {
  const mask = maskerOf([SECRET])
  for (const end of ['\n', '\r\n', '\r\n\r\n'])
    expect(mask(`a ${SECRET.slice(0, 5)}${end}${SECRET.slice(5)} b ${SECRET}${end}c`)).toBe(
      `a •••${end}••• b •••${end}c`,
    )
})
