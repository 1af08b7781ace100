import { hostNames, seedCatalog } from './catalog.ts'
import { type Account, signIn } from './client.ts'
import { createFleetClient } from './fleet.ts'
import {
  approveGate,
  proposeReinstall,
  releaseIntent,
  rotateIntent,
  startOperation,
  waitForEnd,
  waitForFailure,
  waitForGate,
} from './operations.ts'

export type Scenario = {
  gateway_url: string
  fleet_url: string
  hosts: number
  accounts: Account[]
  progress: (text: string) => void
}

const NEW_RELEASE = '2.4.0'

const accountOf = (accounts: Account[], username: string): Account => {
  const account = accounts.find((candidate) => candidate.username === username)
  if (!account) throw new Error(`the demo account ${username} is missing; start with --reset`)
  return account
}

/**
 * The demo of console.md 13: a catalog of hosts that really listen, and three operations: one waits at a gate after
 * its canary, one is finished with evidence, one goes on until a host fails its health check, with a patch that would
 * mend it for somebody to judge. All of it goes through the public API with the demo accounts, so every log line, digest and name is true. Repeating it changes nothing.
 */
export const runScenario = async ({ gateway_url, fleet_url, hosts, accounts, progress }: Scenario): Promise<void> => {
  const [ada, olga, eva] = await Promise.all(
    ['ada', 'olga', 'eva'].map((name) => signIn(gateway_url, accountOf(accounts, name))),
  )
  if (!ada || !olga || !eva) throw new Error('a demo account could not sign in')
  const fleet = createFleetClient(fleet_url)
  const resources = await seedCatalog(ada, fleet, hosts, progress)
  progress(`${resources} resources`)

  const eu1 = hostNames('eu1', hosts)
  const us1 = hostNames('us1', hosts)
  const broken = us1[2] ?? us1[0]
  const [waiting, rotating] = await Promise.all([
    startOperation(olga, 'release eu1', releaseIntent(`web ${NEW_RELEASE} on eu1`, eu1, NEW_RELEASE)),
    startOperation(olga, 'rotate us1', rotateIntent('rotate certificates us1', us1)),
  ])
  progress(`"${waiting.title}" runs its canary, "${rotating.title}" asks at its gate`)
  await approveGate(eva, rotating.operation_id, await waitForGate(eva, rotating.operation_id), 'Fine, they end soon.')
  const rotated = await waitForEnd(eva, rotating.operation_id)
  progress(`"${rotated.title}" ${rotated.status}`)

  if (broken) await fleet.setFaults(broken, { unhealthy_after_deploy: true })
  const failing = await startOperation(
    olga,
    'release us1',
    releaseIntent(`web ${NEW_RELEASE} on us1`, us1, NEW_RELEASE),
  )
  await approveGate(eva, failing.operation_id, await waitForGate(eva, failing.operation_id), 'The canary looks good.')
  if (broken) {
    await waitForFailure(olga, failing.operation_id, `verify.${broken}`)
    await proposeReinstall(olga, failing.operation_id, broken)
  }
  progress(`"${failing.title}" goes on; ${broken} fails its health check, and a patch would mend it`)
  await waitForGate(eva, waiting.operation_id)
  progress(`"${waiting.title}" waits for a person`)
}
