import { expect, it } from 'vitest'
import { isWords } from '../../apps/console/queries/resources.ts'

it.each([
  ...['label.environment=demo', 'foo=', 'labels.env=prod AND x', '-drift=drifted', 'NOT (nmae:web)', 'version > 3'],
  ...['desired_state.tags:web', 'type_key:infra.host'],
])('sends %j as a filter, so that the catalog names a field that it does not know', (q) => {
  expect(isWords(q)).toBe(false)
})

it.each(['web', 'web 2.4.0', '10.0.0.1', '2001:db8::1', 'aa:bb:cc:dd:ee:ff', 'http://x', 'eu1-web:8080'])(
  'searches for the words of %j',
  (q) => {
    expect(isWords(q)).toBe(true)
  },
)
