import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { FORMS, type Form, schemaText } from './schemas.ts'
import { SHIPPED } from './shipped.ts'

/** That of the templates. */
const VERSION = '0.1.0'
const NAME = /^[a-z][a-z0-9-]{0,30}$/

/** Why a pack cannot be created in this folder; `undefined` if it can. */
export const refuseFolder = (given: string): string | undefined => {
  const dir = resolve(given)
  if (!NAME.test(basename(dir)))
    return `The pack is named after its folder, and "${basename(dir)}" is not a valid name: use at most 31 lower-case letters, digits and -.`
  const found = statSync(dir, { throwIfNoEntry: false })
  if (found && !found.isDirectory()) return `${given} is a file: choose a new folder.`
  if (found && readdirSync(dir).length > 0) return `${given} is not empty: choose a new folder.`
  return undefined
}

/** Adapts the text of a template, which is a pack named my-pack, to this folder. Its path may contain that name. */
const named = (text: string, dir: string): string => {
  const name = basename(dir)
  const words: Record<string, string> = {
    '/srv/my-pack': JSON.stringify(dir).slice(1, -1),
    'my-pack': name,
    my_pack: name.replaceAll('-', '_'),
  }
  return text.replace(/\/srv\/my-pack|my[-_]pack/g, (found) => words[found] ?? found)
}

/** Node's `recursive` never returns where a file system answers ENOENT for a new folder, as /proc does. */
const makeFolder = (dir: string): void => {
  if (existsSync(dir)) return
  makeFolder(dirname(dir))
  mkdirSync(dir)
}

/** Writes a pack of this kind with a test, a runnable source, and the schemas for an editor. Returns the files. */
export const initPack = (given: string, kind: string): string[] => {
  const dir = resolve(given)
  const from = join(SHIPPED.templates, kind)
  const files = readdirSync(from, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  const used = new Set<string>()
  const write = (path: string, text: string) => {
    makeFolder(dirname(join(dir, path)))
    writeFileSync(join(dir, path), text, { flag: 'wx' })
    return path
  }
  const written = files.map((entry) => {
    const path = join(entry.parentPath, entry.name)
    const text = named(readFileSync(path, 'utf8'), dir)
    for (const [, form = ''] of text.matchAll(/schemas\/([a-z-]+)\.json/g)) used.add(form)
    return write(relative(from, path), text)
  })
  for (const form of Object.keys(FORMS) as Form[])
    if (used.has(form)) written.push(write(join('schemas', `${form}.json`), `${schemaText(form)}\n`))
  const manifest = { name: basename(dir), version: VERSION, private: true }
  written.push(write('package.json', `${JSON.stringify(manifest, null, 2)}\n`))
  return written.sort()
}

export const kindsOfPacks = (): string[] => readdirSync(SHIPPED.templates).sort()
