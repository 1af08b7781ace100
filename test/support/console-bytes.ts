import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'

/** The first screens: the page's module, and the maximum compressed size of its scripts. */
export const SCREENS: Record<string, { page: string | undefined; most: number }> = {
  'the entry': { page: undefined, most: 140_000 },
  'the inbox': { page: 'inbox/page.tsx', most: 150_000 },
  'a gate': { page: 'gates/page.tsx', most: 155_000 },
}

type Manifest = Record<string, { file: string; imports?: string[] }>

/** The scripts that a built console must load before this page works, and their gzipped bytes. */
export const scriptsOf = (folder: string, page: string | undefined): { files: string[]; bytes: number } => {
  const manifest: Manifest = JSON.parse(readFileSync(join(folder, '.vite/manifest.json'), 'utf8'))
  const chunks = new Set<string>()
  const add = (key: string) => {
    if (chunks.has(key)) return
    chunks.add(key)
    for (const needed of chunkOf(manifest, key).imports ?? []) add(needed)
  }
  for (const key of page === undefined ? ['index.html'] : ['index.html', page]) add(key)
  const files = [...chunks].map((key) => chunkOf(manifest, key).file)
  const bytes = files.reduce((sum, file) => sum + gzipSync(readFileSync(join(folder, file))).length, 0)
  return { files, bytes }
}

const chunkOf = (manifest: Manifest, key: string) => {
  const chunk = manifest[key]
  if (chunk === undefined) throw new Error(`the build has no chunk ${key}`)
  return chunk
}
