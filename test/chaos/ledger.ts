/** The fleet's own ledger is the witness: another process, which is never killed, writes it before each answer. */
export type Effect = { id: number; hostname: string; operation_id: string | null; key: string; effect: string }

const PAGE = 10_000

export const readLedger = async (fleet_url: string): Promise<Effect[]> => {
  const effects: Effect[] = []
  for (;;) {
    const reply = await fetch(`${fleet_url}/ledger?limit=${PAGE}&after=${effects.at(-1)?.id ?? 0}`)
    const { items } = (await reply.json()) as { items: Effect[] }
    effects.push(...items)
    if (items.length < PAGE) return effects
  }
}

/** How often each thing was done, as `host effect`. */
export const countOf = (done: readonly string[]): Map<string, number> => {
  const counts = new Map<string, number>()
  for (const what of done) counts.set(what, (counts.get(what) ?? 0) + 1)
  return counts
}
