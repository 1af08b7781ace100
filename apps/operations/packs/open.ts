import { join } from 'node:path'
import type { Db } from '../../../db/client.ts'
import { unavailable } from '../../shared/errors.ts'
import type { OperationsConfig } from '../config.ts'
import type { Library } from '../graph/types.ts'
import { loadLibrary } from './library.ts'
import { openPackages } from './packages.ts'
import { recordLibrary } from './record.ts'

/** Loads all packs of this deployment. A package whose server is away is missing, and `away` has the reason. */
export const openLibrary = async (config: OperationsConfig): Promise<Library> => {
  const { dirs, away, close } = await openPackages(config.OPERATIONS__PACKS__PACKAGES, {
    credentials_file: config.OPERATIONS__PACKS__REGISTRY_FILE,
    kept: join(config.OPERATIONS__ARTIFACTS__DIR, 'packages'),
  })
  try {
    const packs_dirs = [...(config.OPERATIONS__PACKS__DIR ? [config.OPERATIONS__PACKS__DIR] : []), ...dirs]
    return { ...loadLibrary({ packs_dirs, policy_dir: config.OPERATIONS__POLICY__DIR }), away }
  } finally {
    close()
  }
}

/** Puts the missing packs into use. Throws while one of them is missing, or if one is faulty. */
export const completeLibrary = async (config: OperationsConfig, db: Db, library: Library): Promise<void> => {
  if (!library.away?.length) return
  const whole = await openLibrary(config)
  if (whole.away?.length) throw new Error(whole.away.join('; '))
  await recordLibrary(db, whole)
  Object.assign(library, whole)
}

/** A missing pack may be the one whose steps or gates apply. */
export const refuseIncomplete = ({ away = [] }: Library): void => {
  if (away.length > 0) throw unavailable(`No plan is made while packs are missing. ${away.join('; ')}`)
}
