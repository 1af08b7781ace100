import { loadRelayConfig } from '../../relay/config.ts'
import { acceptRestore, DENSE, type Dense } from '../../relay/events/restore.ts'
import { connectNats } from '../../shared/events/events.ts'
import { OpsError, settingOf, withDb } from './access.ts'

/**
 * `accept-restore`: after Postgres was restored to an earlier state the relay holds all events back, for NATS knows
 * later ones. This makes those streams anew and lets the events of the database go out again.
 */
export const acceptRestores = async (): Promise<number> => {
  settingOf('relay', 'NATS__URL')
  const config = loadRelayConfig()
  const nc = await connectNats(config.RELAY__NATS__URL, 'ops').catch((error: Error) => {
    throw new OpsError(`NATS does not answer: ${error.message}`)
  })
  try {
    const prefix = config.SIGNALBOX__NATS__PREFIX
    const accepted: string[] = []
    await withDb('relay', async (db) => {
      for (const schema of Object.keys(DENSE) as Dense[])
        if (await acceptRestore({ pool: db.$client, schema, prefix }, nc)) accepted.push(schema)
    })
    if (accepted.length === 0) console.log('The relay holds nothing back: no restore of the database was found.')
    else {
      console.log(`Accepted for ${accepted.join(' and ')}: the events of the database go out again.`)
      console.log('Now compare: rebuild catalog, rebuild operations, and reconcile for what the engine still runs.')
    }
    return 0
  } finally {
    await nc.close()
  }
}
