import { expect, it } from 'vitest'
import { withConnection } from '../../db/connection.ts'
import { serverUrl } from '../support/database.ts'

const config = { connectionString: serverUrl('DATABASE_URL'), application_name: 'test' }
const ask = (pid: number) =>
  withConnection(config, (client) => client.query('select pg_terminate_backend($1, 5000)', [pid]))

it('a connection that the server ends between two statements fails the next one, not the process', async () => {
  const work = withConnection(config, async (client) => {
    const ended = new Promise<void>((resolve) => client.once('end', () => resolve()))
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
    await ask(rows[0]?.pid ?? 0)
    await ended
    return client.query('select 1')
  })
  await expect(work).rejects.toThrow()
})
