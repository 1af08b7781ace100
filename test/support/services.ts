import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServiceKey, registryEntryOf } from '../../apps/shared/service/keys.ts'
import { SERVICE_SCOPES } from '../../apps/shared/service/scopes.ts'
import { createServiceSigner, type ServiceSigner } from '../../apps/shared/service/tokens.ts'

const MAKER_SCOPES = ['sessions:create', 'sessions:refresh', 'sessions:revoke']

/** Keys of every service and their registry, as the platform makes them, in a folder of this test file. */
export const testServices = (): {
  registry_file: string
  keyFile: (name: string) => string
  signer: (name: string) => ServiceSigner
  /** An external caller that may do everything at the session component. */
  sessionMaker: ServiceSigner
  remove: () => void
} => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-keys-'))
  const registry: Record<string, unknown> = {}
  for (const name of Object.keys(SERVICE_SCOPES)) {
    const key = createServiceKey()
    writeFileSync(join(folder, `${name}.json`), JSON.stringify(key.private_jwk), { mode: 0o600 })
    registry[name] = registryEntryOf(name, [key.public_jwk])
  }
  const maker = createServiceKey()
  writeFileSync(join(folder, 'session-maker.json'), JSON.stringify(maker.private_jwk), { mode: 0o600 })
  registry['session-maker'] = { keys: [maker.public_jwk], audiences: ['session-internal'], scopes: MAKER_SCOPES }
  const registry_file = join(folder, 'services.json')
  writeFileSync(registry_file, JSON.stringify(registry))
  const keyFile = (name: string) => join(folder, `${name}.json`)
  return {
    registry_file,
    keyFile,
    signer: (name) => createServiceSigner({ name, key_file: keyFile(name) }),
    sessionMaker: createServiceSigner({
      name: 'session-maker',
      key_file: keyFile('session-maker'),
      scopes: MAKER_SCOPES,
    }),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}
