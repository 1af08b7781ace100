import { describe, expect, it, vi } from 'vitest'
import { previewLines } from '../../apps/cli/operations/gate.ts'
import { createOutput, fieldLines, harmless } from '../../apps/cli/terminal/output.ts'

describe('foreign text', () => {
  it('cannot control the terminal or reverse letters, however deep it is nested; its words stay', () => {
    const esc = '\u001b'
    const told = {
      title: `web${esc}[2J${esc}]0;owned\u0007 2.4.0`,
      nodes: [{ error_message: 'refused\r\u009b31m by \u202etsoh', attempt: 2, ended_at: null }],
    }
    expect(harmless(told)).toEqual({
      title: 'web 2.4.0',
      nodes: [{ error_message: 'refused by tsoh', attempt: 2, ended_at: null }],
    })
    expect(harmless('first\n\tsecond, ä 日本 👍')).toBe('first\n\tsecond, ä 日本 👍')
  })

  it('has lost its power when it is shown for a decision; our own colours stay', () => {
    const shown: string[] = []
    const stderr = vi.spyOn(process.stderr, 'write').mockImplementation((text) => shown.push(String(text)) > 0)
    const change = {
      id: 'db',
      action: 'delete',
      fields: [{ path: '/a\u001b[2K\u001b[1A', after: '\u009b2K\u202egone' }],
    }
    const { review } = createOutput({ format: 'table', jsonl: false, select: undefined })
    review(preview([change]), (one) => ['\u001b[31mRED\u001b[39m', ...previewLines(one)])
    stderr.mockRestore()
    expect(shown.map((line) => line.trim())).toEqual([
      '\u001b[31mRED\u001b[39m',
      expect.stringContaining('1 changes.'),
      'delete   db',
      '/a   null -> "gone"',
    ])
  })
})

const preview = (changes: object[], changes_count = changes.length) => ({
  ...{ format: 'signalbox/preview@1', binding: 'checked', changes, changes_count },
})

describe('a selection', () => {
  it.each([
    [true, '"a"\n'],
    [false, 'a\n'],
  ])('of a single text is JSON on a line with --jsonl: %s', async (jsonl, printed) => {
    const shown: string[] = []
    const stdout = vi.spyOn(process.stdout, 'write').mockImplementation((text) => shown.push(String(text)) > 0)
    const { list, settled } = createOutput({ format: 'json', jsonl, select: async () => 'a' })
    list([{ name: 'a' }], 'name', [])
    await settled()
    stdout.mockRestore()
    expect(shown.join('')).toBe(printed)
  })
})

it('has an empty line for the id of a reply without one, as of a dry run', () => {
  const shown: string[] = []
  const stdout = vi.spyOn(process.stdout, 'write').mockImplementation((text) => shown.push(String(text)) > 0)
  const reply: { dry_run: true; operation_id?: string } = { dry_run: true }
  createOutput({ format: 'id', jsonl: false, select: undefined }).one(reply, 'operation_id', () => [])
  stdout.mockRestore()
  expect(shown.join('')).toBe('\n')
})

describe('fields of a change', () => {
  const after = 1
  it('that are folded, or not listed, are counted; a change without fields is a line', () => {
    const fields = [
      { path: '/a', before: 2, after },
      { path: '/b', after, noise: true },
      { path: '/c', sensitive: true },
    ]
    expect(fieldLines('  ~ x   ', fields, 5)).toEqual([
      '  ~ x   /a   2 -> 1',
      '  ~ x   /c   (sensitive, changes)',
      '  ~ x   … 1 folded field: -o json shows all',
      '  ~ x   … 3 of 5 fields are listed',
    ])
    expect(fieldLines('  - x   ', [])).toEqual(['  - x'])
    const many = Array.from({ length: 40 }, (_, i) => ({ id: `${i}`, action: 'delete', fields: [] }))
    expect(previewLines(preview(many, 50)).slice(-2)).toEqual([
      expect.stringContaining('… 10 more: -o json shows all'),
      '  … 10 of 50 changes are too many to be listed',
    ])
    const source = { repo: 'web', ref: 'main', commit: '3f2a' }
    expect(previewLines({ ...preview([]), source }).at(-1)).toBe('  source 3f2a of main in web')
  })
})
