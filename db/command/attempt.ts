import type { Db, Tx } from '../client.ts'

/** Runs work with all its checks and always rolls it back; in a transaction, to a savepoint. Rethrows its errors. */
export const attempt = async <T>(on: Db | Tx, work: (tx: Tx) => Promise<T>): Promise<T> => {
  const rollback = new Error('rolled back')
  const done: T[] = []
  try {
    await on.transaction(async (tx) => {
      done.push(await work(tx))
      throw rollback
    })
  } catch (error) {
    if (error !== rollback) throw error
  }
  return done[0] as T
}
