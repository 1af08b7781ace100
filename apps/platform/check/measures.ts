import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { ROOT } from '../base/paths.ts'
import { paint } from '../base/screen.ts'

/**
 * `npm run check -- --measures`: how long our files and functions are, and how many lines of tests exist per line of
 * the product. Generated code and migrations are left out. A function inside another is counted separately.
 */
type Measure = { name: string; found: number; limit: number; atLeast?: boolean; where?: string }
type Piece = { lines: number; where: string }

const PRODUCT = /^(apps|workflows|activities|db)\/.*\.tsx?$/
const TESTS = /^test\/.*\.tsx?$/
const GENERATED = /\/gen\/|\/migrations\/|\.d\.ts$/
const LONG_FUNCTION = 80

const linesOf = (text: string): number => text.split('\n').length - (text.endsWith('\n') ? 1 : 0)

/** The value that this share of the pieces does not exceed. */
const quantile = (pieces: readonly Piece[], share: number): number =>
  pieces.map(({ lines }) => lines).sort((a, b) => a - b)[Math.floor(pieces.length * share)] ?? 0

const longest = (pieces: readonly Piece[]): Piece =>
  pieces.reduce((found, piece) => (piece.lines > found.lines ? piece : found), { lines: 0, where: '' })

const functionsOf = (file: string, text: string): Piece[] => {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
  const found: Piece[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node) && 'body' in node && node.body) {
      const first = source.getLineAndCharacterOfPosition(node.getStart(source)).line
      const last = source.getLineAndCharacterOfPosition(node.end).line
      found.push({ lines: last - first + 1, where: `${file}:${first + 1}` })
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

const measure = (): Measure[] => {
  const tracked = execFileSync('git', ['ls-files'], { cwd: ROOT, encoding: 'utf8' }).split('\n')
  const read = (file: string) => readFileSync(join(ROOT, file), 'utf8')
  const product = tracked.filter((file) => PRODUCT.test(file) && !GENERATED.test(file))
  const texts = product.map((file) => ({ file, text: read(file) }))
  const files = texts.map(({ file, text }) => ({ lines: linesOf(text), where: file }))
  const functions = texts.flatMap(({ file, text }) => functionsOf(file, text))
  const total = files.reduce((sum, { lines }) => sum + lines, 0)
  const tests = tracked.filter((file) => TESTS.test(file)).reduce((sum, file) => sum + linesOf(read(file)), 0)
  const file = longest(files)
  const fn = longest(functions)
  return [
    { name: 'lines of the product', found: total, limit: 115_000 },
    { name: 'file lines, median', found: quantile(files, 0.5), limit: 75 },
    { name: 'file lines, p90', found: quantile(files, 0.9), limit: 215 },
    { name: 'file lines, longest', found: file.lines, limit: 380, where: file.where },
    { name: 'function lines, p90', found: quantile(functions, 0.9), limit: 26 },
    { name: 'function lines, longest', found: fn.lines, limit: 120, where: fn.where },
    {
      name: `functions over ${LONG_FUNCTION} lines`,
      found: functions.filter(({ lines }) => lines > LONG_FUNCTION).length,
      limit: 25,
    },
    {
      name: 'test lines for a product line',
      found: Math.round((tests / total) * 100) / 100,
      limit: 0.6,
      atLeast: true,
    },
  ]
}

/** Prints the measures as a table. A measure that misses its limit is red, but never fails the check. */
export const printMeasures = (): void => {
  for (const { name, found, limit, atLeast = false, where = '' } of measure()) {
    const holds = atLeast ? found >= limit : found <= limit
    const bound = `${atLeast ? '>=' : '<='} ${limit}`
    console.log(
      `${name.padEnd(32)}${paint(holds ? 'green' : 'red', String(found).padStart(8))}  ${bound.padEnd(12)}${where}`,
    )
  }
}
