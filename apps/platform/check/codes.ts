import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { CODES } from '../../shared/contracts/codes.ts'
import { ROOT } from '../base/paths.ts'

/** Where refusals are made; tests provoke them. */
const SOURCES = ['apps', 'db', 'activities', 'workflows']
const TABLE = 'apps/shared/contracts/codes'
/** Clients know codes, but make no refusals. */
const CLIENTS = /^apps\/(console|cli|client|platform)\//

/** Codes of the closed table that no source refuses with, or that no test provokes. */
export const unusedCodes = async (): Promise<string[]> => {
  const made = textOf(SOURCES, /\.(ts|cedar|lua)$/)
  const provoked = textOf(['test'], /\.ts$/)
  const codes = new Set(Object.values(CODES).flatMap((category) => Object.keys(category)))
  return [...codes].flatMap((code) => {
    const quoted = new RegExp(`['"\`]${code}['"\`]`)
    if (!quoted.test(made)) return [`No source refuses with ${code}: remove it from ${TABLE}.`]
    return new RegExp(`['"\`/]${code}['"\`/]`).test(provoked) ? [] : [`No test provokes ${code}: write one.`]
  })
}

const textOf = (folders: string[], kind: RegExp): string =>
  folders
    .flatMap((folder) =>
      readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((file) => `${folder}/${file}`),
    )
    .filter((file) => kind.test(file) && !file.startsWith(`${TABLE}/`) && !CLIENTS.test(file))
    .map((file) => readFileSync(join(ROOT, file), 'utf8'))
    .join('\n')
