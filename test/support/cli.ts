import { join } from 'node:path'
import { QUICK_IMPORTS, ROOT } from '../../apps/platform/base/paths.ts'

/** Node's arguments for the command line client, as the entry point of every script gives them. */
export const CLI = ['--import', QUICK_IMPORTS, join(ROOT, 'apps/cli/main.ts')]
