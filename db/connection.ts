import pg from 'pg'

/**
 * One connection of its own, for work that no pool serves. A connection that the server ends between two statements fails
 * the next statement, not the process.
 */
export const withConnection = async <T>(
  config: pg.ClientConfig,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> => {
  const client = new pg.Client(config)
  client.on('error', () => {})
  try {
    await client.connect()
    return await work(client)
  } finally {
    await client.end().catch(() => {})
  }
}
