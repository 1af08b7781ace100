import { loadGraph } from './load.ts'

/** Loads the graph of the database that its parent names, sends it, and ends. It ends with its parent, too. */
process.once('disconnect', () => process.exit())
process.once('message', async (url: string) => {
  const loaded = await loadGraph(url).catch((error) => ({ error: String(error) }))
  process.send?.(loaded, () => process.disconnect())
})
