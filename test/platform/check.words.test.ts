import { describe, expect, it } from 'vitest'
import { offences } from '../../apps/platform/check/text/words.ts'

const found = (text: string, file = 'apps/shop/carts.ts') =>
  offences(file, text).map(({ habit, where }) => `${habit.name} ${where.split(':')[1]}`)

describe('the English of comments, documents and texts', () => {
  it('is read in comments, with the line', () => {
    expect(found('const a = 1\n/**\n * Returns nothing.\n */\nconst b = 2 // somebody else\n')).toEqual([
      'nothing 3',
      'somebody 5',
    ])
  })

  it('is read in texts, but not in keys or SQL', () => {
    expect(found("throw new Error('There is nothing to cancel.')\n")).toEqual(['nothing 1'])
    expect(found("const a = 'nothing'\nconst b = 'insert into a on conflict do nothing'\n")).toEqual([])
  })

  it('is read in documents, but not in their code', () => {
    expect(found('# Title\n\nIt goes on\nby now.\n\n```\nnothing\n```\n\n`nothing`\n', 'shop/README.md')).toEqual([
      'by now 4',
      'go on 3',
    ])
  })

  it('has sentences of at most 25 words', () => {
    const words = Array.from({ length: 26 }, () => 'word').join(' ')
    expect(found(`/** ${words}. */`)).toEqual(['long sentence 1'])
    expect(found(`/** ${words.replace(' ', '. ')}. */`)).toEqual([])
  })
})
