import { checkPacks, SHIPPED_PACKS } from '../../catalog/packs/library.ts'
import { loadLibrary } from '../../operations/packs/library.ts'
import { loadPolicies } from '../../operations/policies/cedar.ts'
import { loadPlanPolicies } from '../../operations/policies/plans.ts'
import { ConfigError } from '../../shared/config.ts'

/** `npm run packs:check [-- <folder of type packs> …]`: all packs and policies, without a database. One line per fault. */
const { faults } = checkPacks([SHIPPED_PACKS, ...process.argv.slice(2)])
for (const fault of faults) console.error(fault)
try {
  const { OPERATIONS__PACKS__DIR: dir, OPERATIONS__POLICY__DIR: policy_dir } = process.env
  const site = { packs_dirs: dir ? [dir] : [], policy_dir }
  const { packs } = loadLibrary(site)
  loadPolicies(site.policy_dir)
  loadPlanPolicies(site.policy_dir)
  if (faults.length === 0)
    console.log(`The type packs, ${packs.length} operations packs and the policies have no faults.`)
} catch (error) {
  if (!(error instanceof ConfigError)) throw error
  console.error(error.message)
  process.exitCode = 1
}
if (faults.length > 0) process.exitCode = 1
