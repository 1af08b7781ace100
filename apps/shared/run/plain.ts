import { constants } from 'node:fs'
import { open } from 'node:fs/promises'

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants

/**
 * Reads a file that a program wrote: only a plain file with one name and at most `max` bytes, never what a link leads
 * to. Others are 'unfit'; `undefined` if there is none.
 */
export const readPlain = async (path: string, max: number): Promise<Buffer | 'unfit' | undefined> => {
  const file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK).catch((error: NodeJS.ErrnoException) => error)
  if (file instanceof Error) return file.code === 'ENOENT' ? undefined : 'unfit'
  try {
    const found = await file.stat()
    if (!found.isFile() || found.size > max || found.nlink > 1) return 'unfit'
    const buffer = Buffer.alloc(found.size)
    const { bytesRead } = await file.read(buffer, 0, found.size, 0)
    return buffer.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}
