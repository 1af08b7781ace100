import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { expect, it } from 'vitest'
import { ChangeList, valueText } from '../../apps/console/values/diff.tsx'

it.each<[what: string, before: unknown, after: unknown]>([
  ['a text', '2.3.9', '2.4.0\u202e0.9.3'],
  ['members', { url: 'http://a' }, { url: 'http://\u202ea' }],
  ['a list', ['a'], ['a', 'b\u202ec\u0007']],
  ['a list in another order', ['a', 'b\u202ec'], ['b\u202ec', 'a']],
])('shows the characters that turn or hide others in %s of a change', (_, before, after) => {
  const fields = [{ path: '/re\u202elease', before, after }]
  const change = { resource_id: 'h1', name: 'h1', change: 'update', fields }
  const html = renderToStaticMarkup(createElement(ChangeList, { changes: [change] as never }))
  expect(html).toContain('reU+202Elease')
  expect(html.split('U+202E').length).toBeGreaterThan(2)
  for (const raw of ['\u202e', '\u0007']) expect(html).not.toContain(raw)
})

it('keeps lines and tabs of a value', () => {
  expect(valueText('a\n\tb\u202ec')).toBe('a\n\tbU+202Ec')
})
