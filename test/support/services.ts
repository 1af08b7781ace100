import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServiceSigner, type ServiceSigner } from '../../apps/shared/auth/service.ts'
import { createServiceKey, registryEntryOf } from '../../apps/shared/auth/service-keys.ts'
import { SERVICE_SCOPES } from '../../apps/shared/auth/service-scopes.ts'

/** Keys of every service and their registry, as the platform makes them, in a folder of this test file. */
export const testServices = (): {
  registry_file: string
  keyFile: (name: string) => string
  signer: (name: string) => ServiceSigner
  remove: () => void
} => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-keys-'))
  const registry: Record<string, unknown> = {}
  for (const name of Object.keys(SERVICE_SCOPES)) {
    const key = createServiceKey()
    writeFileSync(join(folder, `${name}.json`), JSON.stringify(key.private_jwk), { mode: 0o600 })
    registry[name] = registryEntryOf(name, [key.public_jwk])
  }
  const registry_file = join(folder, 'services.json')
  writeFileSync(registry_file, JSON.stringify(registry))
  const keyFile = (name: string) => join(folder, `${name}.json`)
  return {
    registry_file,
    keyFile,
    signer: (name) => createServiceSigner({ name, key_file: keyFile(name) }),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}
