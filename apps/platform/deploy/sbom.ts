import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../base/paths.ts'

/** A shipped package, as it names itself. */
export type Shipped = { name: string; version: string; license?: string }
type License = { license?: { id?: string; name?: string }; expression?: string }
type Component = { 'bom-ref': string; type: string; name: string; version: string; licenses?: License[] }
type Bill = {
  serialNumber: string
  metadata: { timestamp: string; component: Component; lifecycles: { phase: string }[] }
  components: Component[]
  dependencies: { ref: string; dependsOn: string[] }[]
}

/** Licenses under which we may redistribute a package. A person must review any other license first. */
const LICENSES =
  /^(MIT|ISC|0BSD|Unlicense|Apache-2\.0|BSD-[23]-Clause|BlueOak-1\.0\.0|CC-BY-4\.0|CC0-1\.0|EPL-2\.0|MPL[- ]2\.0|MIT-0)$/
/** Packages that state their license only in a file. */
const IN_A_FILE: Record<string, string> = { unionfs: 'Unlicense' }
const wordsOf = ({ licenses = [] }: Component): string =>
  licenses.map(({ license, expression }) => expression ?? license?.id ?? license?.name).join(' AND ')
const isFree = (words: string): boolean =>
  words
    .replaceAll(/[()]/g, '')
    .split(' OR ')
    .some((one) => one.split(' AND ').every((license) => LICENSES.test(license)))

/**
 * The CycloneDX bill of materials of shipped packages, as npm makes it from the lock file: with checksums and licenses.
 * One commit's bills are equal. Throws if the lock file lacks a package, or its license is not known to be free.
 */
export const billOf = (what: string, shipped: Shipped[], ...others: Component[]): string => {
  const npm = ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only', '--include', 'dev']
  const bill = JSON.parse(execFileSync('npm', npm, { cwd: ROOT, encoding: 'utf8', maxBuffer: 2 ** 26 })) as Bill
  const known = new Map(bill.components.map((one) => [`${one.name}@${one.version}`, one]))
  const refs = [...new Set(shipped.map(({ name, version }) => `${name}@${version}`))].sort()
  const said = new Map(shipped.map(({ name, version, license }) => [`${name}@${version}`, license]))
  const components = refs.map((ref) => {
    const found = known.get(ref)
    if (!found) throw new Error(`${ref} is shipped but not in package-lock.json`)
    const id = said.get(ref) ?? IN_A_FILE[found.name]
    return (found.licenses?.length ?? 0) === 0 && id ? { ...found, licenses: [{ license: { id } }] } : found
  })
  for (const one of [...components, ...others])
    if (!isFree(wordsOf(one)))
      throw new Error(`${one['bom-ref']} is under "${wordsOf(one)}": review it, then add it to sbom.ts`)
  const kept = new Set([bill.metadata.component['bom-ref'], ...components.map((one) => one['bom-ref'])])
  bill.components = [...components, ...others]
  bill.dependencies = bill.dependencies
    .filter(({ ref }) => kept.has(ref))
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((one) => kept.has(one)) }))
  bill.metadata.timestamp = execFileSync('git', ['log', '-1', '--format=%cI'], { cwd: ROOT, encoding: 'utf8' }).trim()
  bill.metadata.lifecycles = [{ phase: 'build' }]
  Object.assign(bill.metadata.component, { type: 'application', name: what })
  bill.serialNumber = ''
  const hash = createHash('sha256').update(JSON.stringify(bill)).digest('hex')
  bill.serialNumber = `urn:uuid:${hash.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, '$1-$2-8$3-a$4-$5')}`
  return `${JSON.stringify(bill, null, 2)}\n`
}

/** The bill of an image, from its files: its packages, those within the console's scripts, and Node. */
export const billOfImage = (root: string): string => {
  const node = { type: 'application', name: 'node', version: process.versions.node }
  const ref = `pkg:generic/node@${node.version}`
  const bundled = JSON.parse(readFileSync(join(root, 'console/.vite/license.json'), 'utf8')) as Bundled[]
  return billOf('signalbox-image', [...packagesBelow(join(root, 'node_modules')), ...bundled.map(asShipped)], {
    ...{ 'bom-ref': ref, purl: ref, ...node },
    licenses: [{ license: { id: 'MIT' } }],
  })
}

/** A package in Vite's list of a bundle's contents. */
export type Bundled = { name: string; version: string; identifier: string }
const asShipped = ({ name, version, identifier }: Bundled): Shipped => ({ name, version, license: identifier })

/** Each package in a folder of packages, including nested ones. */
const packagesBelow = (folder: string): Shipped[] => {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (!entry.isDirectory() || entry.name.startsWith('.')) return []
    if (entry.name.startsWith('@')) return packagesBelow(path)
    return [packageAt(path), ...packagesBelow(join(path, 'node_modules'))]
  })
}

export const packageAt = (path: string): Shipped => {
  const { name, version, license, licenses } = JSON.parse(readFileSync(join(path, 'package.json'), 'utf8'))
  return { name, version, license: license ?? licenses?.[0]?.type }
}
