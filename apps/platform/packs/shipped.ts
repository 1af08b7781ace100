import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The packs, policies and templates of the platform: in its sources, or in the folder beside the packed client. */
const packed = fileURLToPath(new URL('./shipped', import.meta.url))
const apps = existsSync(packed) ? packed : fileURLToPath(new URL('../..', import.meta.url))

export const SHIPPED = {
  types: join(apps, 'catalog/packs'),
  operations: join(apps, 'operations'),
  templates: join(apps, 'platform/packs/templates'),
}
