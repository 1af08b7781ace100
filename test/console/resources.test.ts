import { expect, it } from 'vitest'
import { isWords } from '../../apps/console/values/filter.ts'

it.each([
  ...['label.environment=demo', 'foo=', 'labels.env=prod AND x', '-drift=drifted', 'NOT (name:web)', 'version > 3'],
  ...['desired_state.tags:web', 'type_key:infra.host', 'labels."team/a.b":x', 'nmae != web'],
])('sends %j as a filter, so that the catalog names a field that it does not know', (q) => {
  expect(isWords(q)).toBe(false)
})

it.each([
  ...['web', 'web 2.4.0', '10.0.0.1', '2001:db8::1', 'aa:bb:cc:dd:ee:ff', 'http://x', 'eu1-web:8080'],
  ...['nginx:1.25', 'nginx:latest', 'web:8080', 'the name of web:80'],
])('searches for the words of %j', (q) => {
  expect(isWords(q)).toBe(true)
})

it('decides at once about a long text of dots', () => {
  const from = performance.now()
  expect(isWords(`a${'.a'.repeat(60)}`)).toBe(true)
  expect(isWords('a'.padEnd(60, '.'))).toBe(true)
  expect(performance.now() - from).toBeLessThan(100)
})
