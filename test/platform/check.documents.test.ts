import { describe, expect, it } from 'vitest'
import { brokenReferences, numbersOf, ownTexts } from '../../apps/platform/check/text/documents.ts'
import { unknownSettings } from '../../apps/platform/check/text/settings.ts'
import { knownSettings } from '../../apps/platform/deploy/reference.ts'

describe('references to documents', () => {
  it('all resolve', () => {
    expect(brokenReferences()).toEqual([])
  })

  it('resolve to headings, and to the items of lists below them', () => {
    const text = '# Title\n## 4. Events\n1. First\n 8. Reconcile\n### 4.9 More\n## Without a number\n2. two\n'
    expect([...numbersOf(text)]).toEqual(['4', '4.1', '4.8', '4.9', '4.9.2'])
  })
})

describe('settings', () => {
  it('that documents name are in a schema, and code reads them by one', () => {
    expect(unknownSettings(ownTexts(), knownSettings())).toEqual([])
  })

  it.each([
    ['apps/catalog/x.md', '`CATALOG__GRAPH__ENABLED`, GRAPH__ENABLED, <APP>__SECRET__KEYS, AUTH__TLS__*', []],
    [
      'apps/catalog/x.md',
      '`CATALOG__NO__SUCH_ONE`',
      ['apps/catalog/x.md: no schema has the setting CATALOG__NO__SUCH_ONE'],
    ],
    [
      'apps/catalog/x.ts',
      'process.env.NODE_ENV, process.env.PORT',
      ['apps/catalog/x.ts: PORT is read outside a schema'],
    ],
    ['apps/platform/x.ts', 'process.env.PATH', []],
  ])('in %s: %s', (file, text, found) => {
    expect(unknownSettings([{ file, text }], knownSettings())).toEqual(found)
  })
})
