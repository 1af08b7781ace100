import { expect, it } from 'vitest'
import { csvOf } from '../../apps/console/ui/export.tsx'

it('writes rows as RFC 4180, and no formula that a spreadsheet would run', () => {
  const row = {
    at: '2026-01-31T12:00:00.000Z',
    roles: ['operator', 'approver'],
    action: '=HYPERLINK("http://evil.example")',
    object: 'resource:a, b',
    reason: 'two\nlines',
    request_id: null,
    nodes: 0,
  }
  const fields = Object.fromEntries(
    Object.keys(row).map((name) => [name, (of: typeof row) => of[name as keyof typeof row]]),
  )
  expect(csvOf(fields, [row])).toBe(
    '\uFEFFat,roles,action,object,reason,request_id,nodes\r\n' +
      '2026-01-31T12:00:00.000Z,operator approver,"\'=HYPERLINK(""http://evil.example"")","resource:a, b","two\nlines",,0\r\n',
  )
  for (const hostile of ['=1', '+1', '-1', '@a', '\t=1', '\r=1'])
    expect(csvOf({ cell: () => hostile }, [row]).split('\r\n')[1], JSON.stringify(hostile)).toMatch(/^"?'/)
})
