import { createDb, ONE_ACT } from '../../db/client.ts'
import { loadTokenConfig } from './config.ts'
import { killKey } from './keys.service.ts'
import { keySettingsOf } from './wire.ts'

/** `npm run admin -- token <verb>`: actions that need token's own keys and database. Each returns its exit code. */
export const verbs: Record<string, (args: string[]) => Promise<number>> = {
  'kill-key': async ([kid]) => {
    if (!kid) {
      console.error('usage: kill-key KID   (GET /jwks lists the key ids)')
      return 2
    }
    const config = loadTokenConfig()
    const { db, close } = createDb(config.TOKEN__DATABASE__URL, { app: 'token-admin', max: 1, ...ONE_ACT })
    try {
      const outcome = await killKey(keySettingsOf(config, db), kid)
      if (typeof outcome === 'object') {
        console.error(`There is no key ${kid}. Known: ${outcome.known.join(', ') || 'none'}.`)
        return 1
      }
      console.log(
        outcome === 'killed'
          ? `Key ${kid} was killed; the next key signs from now on.`
          : `Key ${kid} had already been killed.`,
      )
      return 0
    } finally {
      await close()
    }
  },
}
