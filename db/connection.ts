import pg from 'pg'

/** Runs work on a separate, unpooled connection. If the server closes it, the next statement fails, not the process. */
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
