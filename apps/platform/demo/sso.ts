import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type DemoPerson, type DemoProvider, startProvider } from './provider.ts'

const PEOPLE: DemoPerson[] = [
  { sub: 'demo-mia', name: 'mia', email: 'mia@example.com', email_verified: true, groups: ['staff', 'noc'] },
  { sub: 'demo-tom', name: 'tom', email: 'tom@example.com', email_verified: true, groups: ['staff'] },
  { sub: 'demo-otto', name: 'otto', groups: [] },
]
const PORT = 7190

/** A provider for `npm start -- --sso`, and the file that tells the apps. mia approves, tom reads, otto is refused. */
export const startDemoProvider = async (signalbox_dir: string): Promise<DemoProvider> => {
  const provider = await startProvider({ port: PORT, people: PEOPLE })
  const dir = join(signalbox_dir, 'sso')
  mkdirSync(join(dir, 'secrets'), { recursive: true })
  writeFileSync(join(dir, 'secrets/demo-provider'), provider.client_secret, { mode: 0o600 })
  const entry = {
    id: 'demo',
    title: 'Demo provider',
    issuer: provider.issuer,
    client_id: provider.client_id,
    client_secret: 'secret://file/demo-provider',
    max_role: 'approver',
    groups: { map: { noc: { groups: ['netops'], roles: ['engineer', 'approver'] }, staff: { roles: ['viewer'] } } },
    jit: { enabled: true, require_group: ['staff'] },
  }
  const file = join(dir, 'providers.yaml')
  // JSON is YAML.
  writeFileSync(file, `${JSON.stringify({ format: 'signalbox/providers@1', providers: [entry] }, null, 2)}\n`)
  process.env.AUTH__PROVIDERS__FILE = file
  return provider
}
