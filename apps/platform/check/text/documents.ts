import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { ROOT } from '../../base/paths.ts'
import type { Text } from './settings.ts'

/**
 * Checks that everything that comments and documents refer to exists. A reference is `operations.md 5.4`: the
 * document's base name, and a heading of that number or, in the section of the first number, the item of the second. A
 * path in backticks that begins with one of our folders must exist.
 */
const TEXT = /\.(ts|tsx|mjs|cjs|md|sql|cedar|yaml|yml|lua|sh|css|proto)$/
const GENERATED = /(^|\/)(gen|migrations|histories)\//
const REFERENCE = /\b([a-z][a-z0-9-]*\.md)`?((?:(?:, | and | to | )\d+(?:\.\d+)*)*)/g
const PATH = /`((?:apps|db|workflows|activities|test)\/[\w./-]+)`/g
/** Names of documents outside the repository that comments may mention. */
const FOREIGN: ReadonlySet<string> = new Set(['readme.md'])

type Document = { file: string; numbers: ReadonlySet<string> }

/** The numbers of a document: of its headings, and of the items of numbered lists below them. */
export const numbersOf = (text: string): Set<string> => {
  const numbers = new Set<string>()
  let section = ''
  for (const line of text.split('\n')) {
    const heading = /^#+ (\d+(?:\.\d+)*)[. ]/.exec(line)?.[1]
    if (heading) {
      section = heading
      numbers.add(heading)
    }
    const item = /^\s*(\d+)\. /.exec(line)?.[1]
    if (item && section) numbers.add(`${section}.${item}`)
  }
  return numbers
}

const lineOf = (text: string, index: number): number => text.slice(0, index).split('\n').length

/** Code and documents of this repository. */
export const ownTexts = (): Text[] =>
  execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { cwd: ROOT, encoding: 'utf8' })
    .split('\n')
    .filter((file) => TEXT.test(file) && !GENERATED.test(file) && existsSync(join(ROOT, file)))
    .map((file) => ({ file, text: readFileSync(join(ROOT, file), 'utf8') }))

/** Broken references, as `file:line: what is wrong`. */
export const brokenReferences = (): string[] => {
  const texts = ownTexts()
  const documents = new Map<string, Document>()
  const problems: string[] = []
  for (const { file, text } of texts.filter(({ file }) => file.endsWith('.md') && !file.endsWith('README.md'))) {
    const twin = documents.get(basename(file))
    if (twin) problems.push(`${file}: ${twin.file} has the same name, so references would be ambiguous`)
    documents.set(basename(file), { file, numbers: numbersOf(text) })
  }
  for (const { file, text } of texts) {
    for (const { 0: whole, 1: name = '', 2: numbers = '', index } of text.matchAll(REFERENCE)) {
      if (FOREIGN.has(name) || /[\w/-]$/.test(text.slice(0, index))) continue
      const document = documents.get(name)
      const missing = document ? (numbers.match(/\d+(?:\.\d+)*/g) ?? []).find((one) => !document.numbers.has(one)) : ''
      if (missing !== undefined)
        problems.push(`${file}:${lineOf(text, index)}: ${whole.replace('`', '')} refers to no heading or list item`)
    }
    if (!file.endsWith('.md')) continue
    for (const { 1: path = '', index } of text.matchAll(PATH))
      if (!existsSync(join(ROOT, path))) problems.push(`${file}:${lineOf(text, index)}: ${path} does not exist`)
  }
  return problems
}
