import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { getCompileCacheDir } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type BundleOptions, bundleWorkflowCode } from '@temporalio/worker'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
/** Where workflow code comes from besides its own folder. */
const SHARED = ['apps/shared/codec', 'apps/shared/contracts'].map((folder) => join(ROOT, folder))

/**
 * Builds the workflow code, which takes a core for seconds. Where Node keeps its compiled modules (NODE_COMPILE_CACHE),
 * the code is kept as well, and built again only when a source has changed.
 */
export const bundleOnce = async (options: BundleOptions): Promise<{ code: string }> => {
  const dir = getCompileCacheDir()
  if (dir === undefined) return bundleWorkflowCode(options)
  const file = join(dir, `workflows-${hashOf(options)}.js`)
  if (existsSync(file)) return { code: readFileSync(file, 'utf8') }
  const { code } = await bundleWorkflowCode(options)
  try {
    writeFileSync(`${file}.${process.pid}`, code)
    renameSync(`${file}.${process.pid}`, file)
  } catch {
    // A folder that cannot be written is no fault: Node passes over it, too.
  }
  return { code }
}

const hashOf = ({ logger: _, ...options }: BundleOptions): string => {
  const hash = createHash('sha256').update(JSON.stringify(options))
  for (const folder of [dirname(options.workflowsPath), ...SHARED])
    for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort())
      if (name.endsWith('.ts')) hash.update(name).update(readFileSync(join(folder, name)))
  return hash.update(readFileSync(join(ROOT, 'package-lock.json'))).digest('hex')
}
