import { sql } from 'drizzle-orm'
import { createEngine } from '../../relay/commands/temporal.ts'
import { loadRelayConfig } from '../../relay/config.ts'
import { table } from '../../shared/data/print.ts'
import { OpsError, settingOf, withDb } from './access.ts'

type Open = Record<string, unknown> & { operation_id: string; title: string; status: string }

/**
 * `reconcile [--apply]`: asks the engine about every operation that was started and has not ended, as after a restore
 * of Postgres or Temporal. With --apply each that the engine has not got is handed to operations, which pauses it as
 * engine_lost. Exits 3 when there is one.
 */
export const reconcile = async (apply: boolean): Promise<number> => {
  settingOf('relay', 'DATABASE__URL')
  const engine = createEngine(loadRelayConfig())
  try {
    await engine.health().catch((error: Error) => {
      throw new OpsError(`Temporal does not answer: ${error.message}`)
    })
    return await withDb('relay', async (db) => {
      const { rows } = await db.execute<Open>(
        sql`select o.operation_id, o.title, o.status from operations.operations o join operations.operation_control c using (operation_id)
            where not c.ended and exists (select 1 from operations.operation_commands k
              where k.operation_id = o.operation_id and k.kind = 'start' and k.status in ('delivered', 'applied'))
            order by o.operation_id`,
      )
      const lost: (Open & { found: string })[] = []
      for (const operation of rows) {
        const found = await engine.describe(operation.operation_id)
        if (found !== 'running') lost.push({ ...operation, found })
      }
      const lines = lost.map(({ operation_id, title, status, found }) => [operation_id, title, status, found])
      if (lines.length > 0)
        for (const line of table(['OPERATION', 'TITLE', 'STATUS', 'ENGINE'], lines)) console.log(line)
      console.log(`${rows.length} operations are open; the engine runs ${rows.length - lost.length} of them.`)
      if (lost.length === 0) return 0
      if (!apply) console.log('With --apply the others are paused as engine_lost.')
      else {
        for (const { operation_id, found } of lost)
          await db.execute(
            sql`insert into operations.engine_findings (operation_id, found) values (${operation_id}, ${found})`,
          )
        console.log(`${lost.length} handed to operations: it pauses them as engine_lost.`)
      }
      return 3
    })
  } finally {
    await engine.close()
  }
}
