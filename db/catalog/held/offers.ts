import type { EdgeRow } from '../rows.ts'
import type { provider } from '../tables.ts'
import { type Journal, Unheld } from './journal.ts'

type ProviderRow = typeof provider.$inferSelect
export type HeldOffer = ProviderRow & { capability_key: string }
/** The sum of the claims, and their number. */
export type Claims = { reserved: number; claims: number }

const byId = (a: ProviderRow, b: ProviderRow) => (a.provider_id < b.provider_id ? -1 : 1)

/** The offers of held resources and the claims on them: as in the database, with the changes of this transaction. */
export const createOffers = (
  journal: Journal,
  fresh: ReadonlySet<string>,
  edges: { opened: readonly EdgeRow[]; history: readonly EdgeRow[] },
) => {
  /** By owner: its offers by id, also withdrawn ones that are claimed or were withdrawn here. */
  const known = new Map<string, readonly HeldOffer[]>()
  /** By provider, as in the database. */
  const claims = new Map<string, Claims>()
  const pending = { offers: new Map<string, HeldOffer>(), offer_history: [] as object[] }

  const all = (rid: string): readonly HeldOffer[] => {
    const found = known.get(rid) ?? (fresh.has(rid) ? [] : undefined)
    if (!found) throw new Unheld({ offers: [rid] })
    return found
  }
  const save = (offer: HeldOffer): void => {
    const others = all(offer.rid).filter(({ provider_id }) => provider_id !== offer.provider_id)
    journal.put(known, offer.rid, [...others, offer].sort(byId))
    journal.put(pending.offers, offer.provider_id, offer)
  }
  return {
    of: (rid: string) => all(rid).filter(({ withdrawn_at }) => withdrawn_at === null),
    withdrawn: (rid: string) => all(rid).filter(({ withdrawn_at }) => withdrawn_at !== null),
    save,
    /** Changes or withdraws an offer; its former state goes to history. */
    revise: (offer: HeldOffer, set: Partial<ProviderRow>, at: string): HeldOffer => {
      const next = { ...offer, ...set, swept: false, rev: offer.rev + 1, valid_from: at }
      journal.push(pending.offer_history, { ...offer, valid_to: at })
      save(next)
      return next
    },
    /** A claim without an amount counts as one. */
    claimed: ({ provider_id, rid }: ProviderRow, uses_id: number): Claims => {
      let { reserved, claims: n } = claims.get(provider_id) ?? { reserved: 0, claims: 0 }
      const count = (list: readonly EdgeRow[], by: 1 | -1) => {
        for (const { dst, reltype_id, properties } of list) {
          if (dst !== rid || reltype_id !== uses_id || properties.provider_id !== provider_id) continue
          reserved += by * Number(properties.amount ?? 1)
          n += by
        }
      }
      count(edges.opened, 1)
      count(edges.history, -1)
      return { reserved, claims: n }
    },
    /** A resource that is locked again has its offers read again, unless they were changed here. */
    forget: (rid: string): void => {
      if (![...pending.offers.values()].some((offer) => offer.rid === rid)) known.delete(rid)
    },
    loaded: { offers: known, claims },
    pending,
  }
}
