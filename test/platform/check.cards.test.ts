import { describe, expect, it } from 'vitest'
import { type Code, cardProblems, staleCards } from '../../apps/platform/check/text/cards.ts'

const CARD = `# Shop
**Owns** the schema \`shop\`.
**Called by** gateway.
**Calls** bank (HTTP: payments). It never calls stock.
**Tables** \`carts\`.
**Events** out: SHOP (\`cart.*\`).

## Invariants

1. A cart is paid once:
   \`test/shop/carts.test.ts\`.

## Where to look

**Tests** \`test/shop\`.
**How to add** an endpoint: \`npm run openapi\`.
`
const CODE: Code = {
  text: "{ SHOP: 'shop.>' } emit('cart.paid')",
  tables: "schema.table('carts', {",
  apps: ['bank', 'stock'],
  scripts: ['openapi'],
  calls: new Set(['bank']),
}

describe('cards', () => {
  it('are true', () => expect(staleCards()).toEqual([]))

  it('have no problem if the code agrees', () => expect(cardProblems(CARD, CODE)).toEqual([]))

  it.each<[what: string, card: string, problem: RegExp]>([
    ['a table', CARD.replace('`carts`', '`baskets`'), /^there is no table baskets$/],
    ['an event', CARD.replace('cart.*', 'basket.*'), /^there is no event basket\.$/],
    ['a stream', CARD.replace('SHOP', 'STORE'), /^there is no stream STORE$/],
    ['a call', CARD.replace('bank (HTTP', 'none (HTTP'), /^calls bank: add it$/],
    [
      'an app that it cannot call',
      CARD.replace('bank (', 'bank, stock ('),
      /^names a call to stock, but has no address/,
    ],
    ['a script', CARD.replace('npm run openapi', 'npm run open'), /^there is no script npm run open$/],
    ['an invariant without a test', CARD.replace('`test/shop/carts.test.ts`', 'seen'), /^names no test: A cart|1\. A/],
    ['a missing heading', CARD.replace('**Tests**', 'Tests'), /^has the headings Owns, .*look, How to add$/],
    ['its length', CARD + '\nmore'.repeat(40), /^\d+ lines, at most 40 are allowed$/],
  ])('name %s', (_, card, problem) => expect(cardProblems(card, CODE)).toEqual([expect.stringMatching(problem)]))
})
