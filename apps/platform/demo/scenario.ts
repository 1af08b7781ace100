import type { Operation } from '../../shared/contracts/operations/operations.ts'
import { hostNames, seedCatalog } from './catalog.ts'
import { type Account, accountOf, ENDLESS, type Person, signIn, waitUntil } from './client.ts'
import { createFleetClient } from './fleet.ts'
import {
  approveGate,
  askingGate,
  operationNamed,
  proposeReinstall,
  releaseIntent,
  rotateIntent,
  startOperation,
  waitForEnd,
  waitForFailure,
} from './operations.ts'

export type Scenario = {
  gateway_url: string
  fleet_url: string
  hosts: number
  accounts: Account[]
  progress: (text: string) => void
  /** Called with the next step. */
  at?: (step: string) => void
}

const NEW_RELEASE = '2.4.0'

/** The operation of that title, started unless an earlier seed did. */
export const ensureOperation = async (
  operator: Person,
  name: string,
  intent: { title: string } & Record<string, unknown>,
): Promise<Operation> =>
  (await operationNamed(operator, intent.title)) ?? (await startOperation(operator, name, intent))

export const passGate = async (approver: Person, operation_id: string, comment: string): Promise<void> => {
  const gate = await askingGate(approver, operation_id)
  if (gate) await approveGate(approver, operation_id, gate, comment)
}

/** Waits until the catalog has a report of the host's health. */
const reported = (person: Person, resource_id: string) =>
  waitUntil(
    `a report of ${resource_id}`,
    () => person.get<{ health_status: string }>(`/v1/resources/${resource_id}`),
    ({ health_status }) => health_status !== 'unknown',
  )

/**
 * The demo of console.md 13: a catalog of hosts that really listen, and three operations. One waits at a gate after its
 * canary, one has finished with evidence, and one runs until a host fails its health check. A patch would fix that
 * host; a person must judge it. Everything goes through the public API with the demo accounts, so every log line,
 * digest and name is real. A repeat makes no change.
 */
export const runScenario = async ({ gateway_url, fleet_url, hosts, accounts, progress, at = () => {} }: Scenario) => {
  at('signing in')
  const [ada, olga, eva] = await Promise.all(
    ['ada', 'olga', 'eva'].map((name) => signIn(gateway_url, accountOf(accounts, name, 'start with --reset'), ENDLESS)),
  )
  if (!ada || !olga || !eva) throw new Error('a demo account could not sign in')
  const fleet = createFleetClient(fleet_url)
  at('the catalog')
  const resources = await seedCatalog(ada, fleet, hosts, progress)
  progress(`${resources} resources`)

  const eu1 = hostNames('eu1', hosts)
  const us1 = hostNames('us1', hosts)
  const release = (region: string, names: string[]) =>
    releaseIntent(`web ${NEW_RELEASE} on ${region}`, names, NEW_RELEASE)
  at('the first reports')
  // The brief at the gate compares the canary with its own numbers before the change.
  await reported(ada, eu1[0] as string).catch(() => progress(`${eu1[0]} has not reported its health yet`))
  at('the first operations')
  const [waiting, rotating] = await Promise.all([
    ensureOperation(olga, 'release eu1', release('eu1', eu1)),
    ensureOperation(olga, 'rotate us1', rotateIntent('rotate certificates us1', us1)),
  ])
  progress(`"${waiting.title}" is changing its canary, "${rotating.title}" is waiting at its gate`)
  at(`"${rotating.title}"`)
  await passGate(eva, rotating.operation_id, 'Fine, they end soon.')
  const rotated = await waitForEnd(eva, rotating.operation_id, ENDLESS.ms)
  progress(`"${rotated.title}" ${rotated.status}`)

  // Not the first host, which is the canary: if that failed, the gate would not ask.
  const broken = us1[Math.min(2, us1.length - 1)] as string
  const intent = release('us1', us1)
  at(`"${intent.title}"`)
  if (!(await operationNamed(olga, intent.title))) await fleet.setFaults(broken, { unhealthy_after_deploy: true })
  const failing = await ensureOperation(olga, 'release us1', intent)
  if (us1.length > 1) await passGate(eva, failing.operation_id, 'The canary looks good.')
  if (await waitForFailure(olga, failing.operation_id, `verify.${broken}`))
    await proposeReinstall(olga, failing.operation_id, broken)
  progress(`"${failing.title}" continues; ${broken} fails its health check, and a patch that repairs it is proposed`)
  at(`"${waiting.title}"`)
  const gate = await askingGate(eva, waiting.operation_id)
  progress(gate ? `"${waiting.title}" is waiting for a person` : `"${waiting.title}" is no longer waiting`)
}
