import { readFileSync } from 'node:fs'

/** The version of this client: that of its package. */
export const versionOfClient = (): string =>
  (JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }).version
