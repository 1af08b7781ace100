import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ROOT } from '../../apps/platform/base/paths.ts'

/** The guides for operating an installation, and the commands in them. */
const FOLDER = join(ROOT, 'apps/platform/deploy/guides')
export const GUIDES = readdirSync(FOLDER).filter((file) => file !== 'README.md')
export const guideText = (file: string) => readFileSync(join(FOLDER, file), 'utf8')

/** The blocks of a guide of these kinds, in their order: `cluster`, `servers`, `postgres`, `all`. */
export const blocksOf = (file: string, ...kinds: string[]): string[] =>
  [...guideText(file).matchAll(/^( *)```sh (\w+)\n([\s\S]*?)^ *```$/gm)]
    .filter(([, , of = '']) => kinds.includes(of))
    .map(([, indent = '', , block = '']) => block.replaceAll(new RegExp(`^${indent}`, 'gm'), ''))

/** Types a block as a person would in a checkout; throws with its output if one of its commands fails. */
export const typeBlock = async (
  block: string,
  env: NodeJS.ProcessEnv,
  account?: { uid: number; gid: number },
): Promise<string> => {
  const cwd = account ? '/' : ROOT
  // Whose input is a socket, as here, bash takes for a shell from afar, and would read the start files of this machine.
  const typed = promisify(execFile)('bash', ['--norc', '-euo', 'pipefail', '-c', block], { cwd, env, ...account })
  const { stdout, stderr } = await typed.catch((error) => {
    throw new Error(`${error.message}\n${error.stdout}`)
  })
  return stdout + stderr
}
