import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { LINE, NAME } from '../../apps/shared/contracts/shapes.ts'

/** Which texts are allowed, by the documents of the API alone. */
type Node = { [member: string]: unknown }
type Document = {
  paths: Record<string, Record<string, { requestBody?: Node }>>
  components: { schemas: Record<string, Node> }
}
const documents = ['public', 'operations-internal', 'catalog-internal'].map(
  (name): Document =>
    JSON.parse(readFileSync(new URL(`../../apps/shared/contracts/openapi/${name}.json`, import.meta.url), 'utf8')),
)

const visit = (node: unknown, see: (node: Node) => void): void => {
  if (Array.isArray(node)) for (const one of node) visit(one, see)
  else if (typeof node === 'object' && node !== null) {
    see(node as Node)
    for (const member of Object.values(node)) visit(member, see)
  }
}

const patterns = new Set<string>()
visit(documents, ({ pattern }) => typeof pattern === 'string' && patterns.add(pattern))

describe('the patterns of texts', () => {
  it("are in the dialect that all languages share, and as strict as the server's up to U+FFFF", () => {
    for (const pattern of patterns) {
      expect(pattern).not.toMatch(/\\p\{|\\u\{|\(\?[<=!]/)
      expect(() => new RegExp(pattern), pattern).not.toThrow()
    }
    const strict = [NAME, LINE].map((pattern) => new RegExp(pattern, 'u'))
    const published = [...patterns].filter((pattern) => /^\^\[ \\u00a0/.test(pattern)).map((one) => new RegExp(one))
    for (const pattern of strict) {
      const takes = (own: RegExp) =>
        Array.from({ length: 0x10000 }, (_, code) => own.test(`a${String.fromCharCode(code)}`))
      const wanted = takes(pattern).join()
      expect(published.some((own) => takes(own).join() === wanted)).toBe(true)
    }
  })

  /** All members are checked before a body is refused: the length of a text does not spare it its pattern. */
  const LENGTH = 16_000
  const MOST_MS = 40
  const UNITS = [
    'a',
    '0',
    '.',
    '-',
    ' ',
    '/',
    '_',
    ':',
    'a.',
    'a-',
    'a/',
    '0-',
    'A',
    '\u00e4',
    '\u0301',
    '+',
    '@',
    '=',
    '"',
    '\\',
  ]

  it('take time linear in the text', () => {
    const slow: string[] = []
    for (const pattern of patterns) {
      const regex = new RegExp(pattern, 'u')
      const isSlow = (text: string): boolean => {
        const before = process.cpuUsage()
        regex.test(text)
        return process.cpuUsage(before).user / 1000 > MOST_MS
      }
      const texts = ['', 'a', '/', 'sha256:'].flatMap((head) =>
        UNITS.flatMap((unit) =>
          ['', '\n', '!', '\0'].map((tail) => ({ unit, tail, text: head + unit.repeat(LENGTH / unit.length) + tail })),
        ),
      )
      const found = texts.find(({ text }) => isSlow(text))
      if (found) slow.push(`${pattern} over ${JSON.stringify(found.unit)} and ${JSON.stringify(found.tail)}`)
    }
    expect(patterns.size).toBeGreaterThan(40)
    expect(slow).toEqual([])
  })
})

describe('names and titles', () => {
  const INVISIBLE = [' ', 'a\u200bb', 'a\u202eb', 'a\u0007b', 'a\nb', 'a\ufffe']

  it('refuse blank and invisible text, in every request', () => {
    const loose: string[] = []
    const seen = new Set<string>()
    let names = 0
    for (const { paths, components } of documents) {
      const look = (node: unknown, at: string): void =>
        visit(node, ({ $ref, properties }) => {
          const name = typeof $ref === 'string' ? ($ref.split('/').at(-1) ?? '') : ''
          if (name !== '' && !seen.has(name)) {
            seen.add(name)
            look(components.schemas[name], name)
          }
          for (const [member, schema] of Object.entries((properties ?? {}) as Record<string, Node>)) {
            if (!['name', 'title', 'display_name', 'owner'].includes(member) || schema.type !== 'string') continue
            names += 1
            const { pattern = '', enum: listed } = schema as { pattern?: string; enum?: unknown }
            const regex = new RegExp(pattern, 'u')
            if (!listed && INVISIBLE.some((text) => regex.test(text))) loose.push(`${at} ${member}`)
          }
        })
      for (const [path, methods] of Object.entries(paths))
        for (const [method, { requestBody }] of Object.entries(methods)) look(requestBody, `${method} ${path}`)
    }
    expect(names).toBeGreaterThan(12)
    expect(loose.sort()).toEqual(KNOWN)
  })

  /** Names of an import are refused item by item, not with the whole request; the others come from machines. */
  const KNOWN = [
    'ExecutionResult name',
    'ImportItem display_name',
    'ImportItem name',
    'ImportItem owner',
    'NodeSignal name',
  ]

  it('may be of any script', () => {
    for (const name of ['eu1', 'Z\u00fcrich', '\u6771\u4eac', '\u0930\u093e\u092e', ' a b ', '\u{1f980}'])
      for (const pattern of [NAME, LINE]) expect(new RegExp(pattern, 'u').test(name), name).toBe(true)
    expect(new RegExp(LINE, 'u').test('\u{1f469}\u200d\u{1f4bb}')).toBe(true)
    for (const name of ['', ' ', '\u200d', '\ufe0f']) expect(new RegExp(LINE, 'u').test(name), name).toBe(false)
  })
})
