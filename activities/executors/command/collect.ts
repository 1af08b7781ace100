import { readdir } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { isDeeper } from '../../../apps/shared/data/json.ts'
import { isObject } from '../../../apps/shared/data/pointer.ts'
import { readPlain } from '../../../apps/shared/run/plain.ts'
import { parseOutput } from '../../../apps/shared/run/storable.ts'
import { failed } from '../http/send.ts'
import type { ExecutorContext, ExecutorResult } from '../types.ts'

const MAX_OUTPUTS = 64 * 1024
const MAX_DEPTH = 64
const MAX_ARTIFACTS = 100
const MAX_ARTIFACT_BYTES = 8 * 1024 * 1024
export const FILE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/
const TYPES: Record<string, string> = {
  '.json': 'application/json',
  '.log': 'text/plain',
  '.md': 'text/markdown',
  '.pem': 'application/x-pem-file',
  '.txt': 'text/plain',
}

/** Collects the program's outputs, and its files as artifacts. */
export const collect = async (
  places: { artifacts: string; outputs: string },
  context: ExecutorContext,
): Promise<ExecutorResult> => {
  const written = await readPlain(places.outputs, MAX_OUTPUTS)
  if (written === 'unfit')
    return failed('outputs_invalid', `The outputs must be a regular file of at most ${MAX_OUTPUTS} bytes.`)
  const outputs = written === undefined ? {} : parse(written)
  if (!outputs) return failed('outputs_invalid', 'The outputs are not a JSON object.')
  const names = (await readdir(places.artifacts)).sort()
  let left = MAX_ARTIFACT_BYTES
  for (const name of names.slice(0, MAX_ARTIFACTS)) {
    const content = FILE_NAME.test(name) ? await readPlain(join(places.artifacts, name), left) : 'unfit'
    if (content === undefined) continue
    if (content === 'unfit') {
      context.log(`The file ${name.slice(0, 100)} was not stored: it is not a regular file, or it is too large.`, {
        level: 'warn',
      })
      continue
    }
    left -= content.length
    const media_type = TYPES[extname(name)] ?? 'application/octet-stream'
    context.artifact({ name, kind: 'file', media_type, content })
  }
  if (names.length > MAX_ARTIFACTS)
    context.log(`Only the first ${MAX_ARTIFACTS} of ${names.length} files were stored.`, { level: 'warn' })
  return { status: 'succeeded', raw: outputs }
}

const parse = (bytes: Buffer): Record<string, unknown> | undefined => {
  try {
    const value = parseOutput(bytes.toString('utf8'))
    return isObject(value) && !isDeeper(value, MAX_DEPTH) ? value : undefined
  } catch {
    return undefined
  }
}
