import { describe, expect, it } from 'vitest'
import { brokenReferences, numbersOf } from '../../apps/platform/check/text/documents.ts'

describe('references to documents', () => {
  it('all resolve', () => {
    expect(brokenReferences()).toEqual([])
  })

  it('resolve to headings, and to the items of lists below them', () => {
    const text = '# Title\n## 4. Events\n1. First\n 8. Reconcile\n### 4.9 More\n## Without a number\n2. two\n'
    expect([...numbersOf(text)]).toEqual(['4', '4.1', '4.8', '4.9', '4.9.2'])
  })
})
