import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ROOT } from '../../apps/platform/base/paths.ts'

/** The guides for operating an installation, and the commands in them. */
const FOLDER = join(ROOT, 'apps/platform/deploy/guides')
export const GUIDES = readdirSync(FOLDER).filter((file) => file !== 'README.md')
export const guideText = (file: string) => readFileSync(join(FOLDER, file), 'utf8')

/** The blocks of a guide of one kind: `cluster`, `servers`. */
export const blocksOf = (file: string, kind: string): string[] =>
  [...guideText(file).matchAll(/^( *)```sh (\w+)\n([\s\S]*?)^ *```$/gm)]
    .filter(([, , of]) => of === kind)
    .map(([, indent = '', , block = '']) => block.replaceAll(new RegExp(`^${indent}`, 'gm'), ''))

/** Types a block as a person would in a checkout; throws with its output if one of its commands fails. */
export const typeBlock = async (block: string, env: NodeJS.ProcessEnv): Promise<string> => {
  const typed = promisify(execFile)('bash', ['-euo', 'pipefail', '-c', block], { cwd: ROOT, env })
  const { stdout, stderr } = await typed.catch((error) => {
    throw new Error(`${error.message}\n${error.stdout}`)
  })
  return stdout + stderr
}
