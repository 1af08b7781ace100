import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { expect, it } from 'vitest'
import { PreviewView } from '../../apps/console/gates/preview.tsx'
import { isPreview } from '../../apps/console/values/diff.tsx'
import type { Preview } from '../../apps/shared/contracts/client/preview.ts'

const preview: Preview = {
  format: 'signalbox/preview@1',
  binding: 'exact',
  tool: '1.12.6',
  source_digest: 'sha256:0',
  source: { repo: 'web', ref: 'main', commit: '3f2a1b4c5d6e7f8091a2b3c4d5e6f708192a3b4c' },
  base: { lineage: 'l', serial: 41 },
  plan: { sha256: '0', content_sha256: 'abcdef0123456789' },
  changes: [
    {
      id: 'terraform_data.disk',
      action: 'replace',
      fields: [
        { path: '/input/size', before: 10, after: 20 },
        { path: '/id', before: 'old-id', unknown: true },
        { path: '/input/password', sensitive: true },
      ],
      fields_count: 7,
    },
  ],
  changes_count: 3,
  digest: 'sha256:1',
  counts: { replace: 1 },
  unknowns: 1,
  drift: 0,
  no_change: false,
}

it("draws the tool's planned changes field by field, and names the omissions", () => {
  const text = renderToStaticMarkup(createElement(PreviewView, { preview }))
    .replace(/<[^>]+>/g, ' ')
    .replace(/\s+/g, ' ')
  for (const words of [
    'The preview shows 3 changes',
    'This plan file runs, byte for byte.',
    'terraform_data.disk',
    'input.size 10 → 20',
    'id old-id → known after apply',
    'input.password sensitive → changes',
    'The first 3 of 7 fields.',
    'The first 1 of 3 changes',
    'serial 41',
    'abcdef012345',
    'The commit is 3f2a1b4c5d6e (web, main)',
  ])
    expect(text).toContain(words)
})

it('shows the characters of a tool that turn or hide others', () => {
  const [change] = preview.changes
  const turned = { ...preview, changes: [{ ...change, id: 'a\u202eb', note: 'c\u202ed' }], unforeseen: ['e\u202ef'] }
  const html = renderToStaticMarkup(createElement(PreviewView, { preview: turned as never }))
  for (const words of ['aU+202Eb', 'cU+202Ed', 'eU+202Ef']) expect(html).toContain(words)
})

it('treats no other output as a preview', () => {
  for (const value of [null, undefined, 'text', 7, {}, { format: 'other' }]) expect(isPreview(value)).toBe(false)
})
