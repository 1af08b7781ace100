import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { ROOT } from '../../base/paths.ts'

/**
 * Checks that comments, documents and texts follow the English of test/style.md. Each habit has a ceiling: the number
 * of places that still have it. A ceiling may only fall. Code in backticks and fenced blocks is not prose.
 */
type Habit = { name: string; instead: string; pattern: RegExp; most: number }
type Prose = { file: string; line: number; text: string; kind: 'comment' | 'document' | 'text' }
type Offence = { habit: Habit; where: string; text: string }

const LONGEST_SENTENCE = 25
const LONG: Habit = { name: 'long sentence', instead: `at most ${LONGEST_SENTENCE} words`, pattern: /^$/, most: 32 }
/** `cancelled`, a state, and `enrolment`, a path, are names in the API. */
const BRITISH =
  /\b(behaviours?|colour\w*|favour\w*|honour\w*|neighbour\w*|centre[ds]?|licence|defence|analyse[ds]?|catalogue|whilst|amongst|judgement|grey|artefacts?|fulfil|(?:travel|label|model|signal|level)l(?:ed|ing)|(?:organ|recogn|normal|serial|initial|optim|summar|author|minim|maxim|canonical|material|special|synchron)is(?:e[ds]?|ing|ation))\b/gi
const HABITS: Habit[] = [
  { name: 'nothing', instead: 'undefined, none, "no …"', pattern: /(?<!\bdo )\bnothing\b/gi, most: 105 },
  { name: 'somebody', instead: 'someone, anyone, everyone', pattern: /\b(some|any|every)body\b/gi, most: 0 },
  { name: 'by now', instead: 'already, now', pattern: /\b(by now|just now|under way)\b/gi, most: 0 },
  { name: 'what', instead: 'name the thing', pattern: /\b(is|are|of|from|with|for|by|than|into) what\b/gi, most: 17 },
  { name: 'is there', instead: 'exists', pattern: /\b(is|are|was|were) there\b(?! (an?|any|no|some)\b)/gi, most: 5 },
  { name: 'any more', instead: 'no longer', pattern: /\bany more\b/gi, most: 0 },
  { name: 'go on', instead: 'continue, resume', pattern: /\b(go(es)?|going|went) on\b/gi, most: 0 },
  { name: 'may be that', instead: 'may', pattern: /\bmay be that\b/gi, most: 0 },
  { name: 'stands', instead: 'is, is in', pattern: /\bstands? (in|beside|here|there|below|above|behind)\b/gi, most: 1 },
  { name: 'British', instead: 'American spelling', pattern: BRITISH, most: 0 },
  LONG,
]

const SOURCE = /^(apps|workflows|activities|db|test)\/.*\.(ts|tsx|mjs|cjs)$|\.md$/
const LEFT_OUT = /\/(gen|migrations|histories)\/|\.d\.ts$|^test\/spec\/|^apps\/platform\/check\/text\/words\.ts$/
/** Prose has words with spaces between them; keys, paths and SQL do not. */
const PROSE = /^[^`]*[a-z,]+ [a-z]+ [a-z]+/i
/** Signs that begin or end a comment or its lines. */
const MARKS = /^\s*(\/\*\*?|\*\/|\*|\/\/)/gm
const SQL = /\b(select|insert into|update \w+ set|delete from|create (table|index|or replace)|on conflict)\b/i

const plain = (text: string): string => text.replace(/`[^`]*`/g, '`').replace(/\]\([^)]*\)/g, ']')

/** Comments of a source, one piece per block, and quoted texts that are prose. */
const proseOf = (file: string, text: string): Prose[] => {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
  const lineAt = (at: number) => source.getLineAndCharacterOfPosition(at).line + 1
  const found = new Map<number, Prose>()
  const visit = (node: ts.Node): void => {
    if (node.kind >= ts.SyntaxKind.FirstJSDocNode && node.kind <= ts.SyntaxKind.LastJSDocNode) return
    const children = node.getChildren(source)
    for (const child of children) visit(child)
    if (children.length > 0 || ts.isJsxText(node)) return
    for (const ranges of [ts.getLeadingCommentRanges(text, node.pos), ts.getTrailingCommentRanges(text, node.pos)])
      for (const { pos, end } of ranges ?? [])
        found.set(pos, { file, line: lineAt(pos), kind: 'comment', text: text.slice(pos, end).replace(MARKS, '') })
    const words = ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node)
    if (words && !file.startsWith('test/') && PROSE.test(node.text) && !SQL.test(node.text))
      found.set(node.getStart(source), { file, line: lineAt(node.getStart(source)), kind: 'text', text: node.text })
  }
  visit(source)
  return [...found.values()]
}

/** Paragraphs, list items and cells of a document. */
const paragraphsOf = (file: string, text: string): Prose[] => {
  const found: Prose[] = []
  let open: Prose | undefined
  let fenced = false
  for (const [index, line] of text.split('\n').entries()) {
    if (/^\s*```/.test(line)) fenced = !fenced
    if (fenced || /^\s*$|^\s*```|^\s*\||^#/.test(line)) {
      open = undefined
      if (!fenced)
        for (const cell of line.split('|')) found.push({ file, line: index + 1, kind: 'document', text: cell })
    } else if (open === undefined || /^\s*([-*]|\d+\.) /.test(line)) {
      open = { file, line: index + 1, kind: 'document', text: line }
      found.push(open)
    } else open.text += `\n${line}`
  }
  return found
}

/** A period that ends a sentence; in prose, a colon or semicolon also ends a thought. */
const sentencesOf = (text: string): string[] => text.split(/(?<=[.!?:;])\s+(?=\S)/)

const offencesOf = ({ file, line, text, kind }: Prose): Offence[] => {
  const prose = plain(text)
  const at = (index: number): string => `${file}:${line + prose.slice(0, index).split('\n').length - 1}`
  const habits = HABITS.filter((habit) => habit !== LONG).flatMap((habit) =>
    [...prose.matchAll(habit.pattern)].map(({ 0: found, index }) => ({ habit, where: at(index), text: found })),
  )
  if (kind === 'text') return habits
  const long = sentencesOf(prose).filter((one) => (one.match(/[\w’'-]{2,}/g) ?? []).length > LONGEST_SENTENCE)
  return [
    ...habits,
    ...long.map((text) => ({ habit: LONG, where: at(prose.indexOf(text)), text: text.replace(/\s+/g, ' ') })),
  ]
}

export const offences = (file: string, text: string): Offence[] =>
  (file.endsWith('.md') ? paragraphsOf(file, text) : proseOf(file, text)).flatMap(offencesOf)

const allOffences = (): Offence[] =>
  execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { cwd: ROOT, encoding: 'utf8' })
    .split('\n')
    .filter((file) => SOURCE.test(file) && !LEFT_OUT.test(file) && existsSync(join(ROOT, file)))
    .flatMap((file) => offences(file, readFileSync(join(ROOT, file), 'utf8')))

/** Habits above their ceiling, with every place that has them. */
export const oddWords = (): string[] => {
  const found = allOffences()
  return HABITS.flatMap((habit) => {
    const own = found.filter((offence) => offence.habit === habit)
    if (own.length <= habit.most) return []
    const places = own.map(({ where, text }) => `  ${where}: ${text}`)
    return [
      `"${habit.name}" is written ${own.length} times, ${habit.most} are allowed: write ${habit.instead}`,
      ...places,
    ]
  })
}

/** `npm run check -- --words`: all remaining places. */
export const printWords = (): void => {
  const found = allOffences()
  for (const { habit, where, text } of found) console.log(`${where}: ${text} (${habit.instead})`)
  for (const { name, most } of HABITS)
    console.log(`${name}: ${found.filter(({ habit }) => habit.name === name).length}, at most ${most}`)
}
